package prove

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/internal/verify"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// seed makes a failure repeatable.
const seed = 20150715

// conventions are those in which all prologues of an image are verified: up to three
// parameters in registers, and all parameters of a site in a record.
var conventions = []prologue.Convention{prologue.ConventionRegisters, prologue.ConventionRecord}

// readsHere are the ways to read memory that prologues are proved with in the running kernel.
func readsHere() []prologue.Reads {
	if kernelhas.Casts() {
		return []prologue.Reads{prologue.ReadUser, prologue.ReadCast}
	}
	return []prologue.Reads{prologue.ReadUser}
}

func open(t *testing.T, name string) (*dwarfloc.Image, *oracle.File) {
	t.Helper()
	data, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := oracle.FromBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	return testenv.Fixture(t, name), file
}

func check(t *testing.T, r *Report) {
	t.Helper()
	t.Log(r)
	for _, d := range r.Disagreements {
		t.Error(d)
	}
	if r.Values == 0 || r.Values != r.Agreed {
		t.Errorf("%d values compared, %d agreed", r.Values, r.Agreed)
	}
}

func TestFixtures(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, name := range fixtures.Names() {
		t.Run(name, func(t *testing.T) {
			img, file := open(t, name)
			for _, c := range conventions {
				for _, reads := range readsHere() {
					o := Options{Seed: seed, States: 8, Convention: c, Reads: reads}
					r, err := Image(context.Background(), img, file, o)
					if err != nil {
						t.Fatal(err)
					}
					check(t, r)
					v, err := verify.Image(context.Background(), img, how(o))
					if err != nil || v.Accepted != v.Prologues || v.Prologues == 0 {
						t.Errorf("verifier, convention %d, %v reads: %+v, %v", c, reads, v, err)
					}
				}
			}
		})
	}
}

// TestForeign does the same for images of 32 bits and big-endian ones. Their prologues read memory of this process,
// which has the machine's byte order and width of words.
func TestForeign(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, name := range fixtures.Foreign() {
		t.Run(name, func(t *testing.T) {
			img, file := open(t, name)
			for _, c := range conventions {
				r, err := Image(context.Background(), img, file, Options{Seed: seed, States: 8, Convention: c})
				if err != nil {
					t.Fatal(err)
				}
				check(t, r)
				if r.Values < 500 {
					t.Errorf("convention %d: only %d values", c, r.Values)
				}
			}
		})
	}
}

// TestFindsWrong checks that a location with a wrong register, or with an offset that is
// wrong by eight bytes, is found.
func TestFindsWrong(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, wrong := range []struct {
		name   string
		change func(l *loc.Location)
	}{
		{"register", func(l *loc.Location) {
			if l.Kind == loc.KindRegister {
				l.Expr = &loc.Expr{Op: ops.Reg, K: l.Expr.K ^ 1}
			}
		}},
		{"offset", func(l *loc.Location) {
			if l.Kind == loc.KindMemory {
				l.Expr = &loc.Expr{Op: ops.Add, A: l.Expr, B: &loc.Expr{Op: ops.Const, K: 8}}
			}
		}},
		{"memory for value", func(l *loc.Location) {
			if l.Kind == loc.KindValue {
				l.Kind = loc.KindMemory
			}
		}},
	} {
		for _, name := range []string{"basic-gcc12-O2-dwarf5.elf", "foreign-gcc12-i386-O2-dwarf5.elf", "foreign-gcc12-s390x-O2-dwarf5.elf"} {
			t.Run(wrong.name+" "+name, func(t *testing.T) { findsWrong(t, name, wrong.change) })
		}
	}
}

func findsWrong(t *testing.T, name string, change func(l *loc.Location)) {
	t.Helper()
	img, file := open(t, name)
	r, err := run(img, file, nil, Options{Seed: seed}, func(add addFunc) (uint64, error) {
		return share.EachDistinct(context.Background(), img, how(Options{Convention: prologue.ConventionRegisters}), func(w int, s *dwarfloc.Site, args []plan.Argument, first int) error {
			for i := range args {
				v := *args[i].Variable
				change(&v.Loc)
				args[i].Variable, args[i].Loc = &v, v.Loc
			}
			return add(w, s, nil, args, first)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Disagreements) == 0 {
		t.Errorf("nothing was found: %v", r)
	}
}

// TestKernel proves definitions on a kernel image, and with PROVE_FULL=1 or PROVE_SEED the whole
// image.
func TestKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	bpfexec.RequireOrSkip(t)
	t.Run("amd64", func(t *testing.T) { proveKernel(t, testenv.Vmlinux(t)) })
	t.Run("arm64", func(t *testing.T) {
		if path := testenv.VmlinuxOf(t, "arm64"); path != "" {
			proveKernel(t, path)
		}
	})
}

// wholes returns in which ways a whole kernel is proved: with PROVE_FULL=1 in all, with PROVE_SEED in one that it chooses.
func wholes(t *testing.T) (all []Options) {
	t.Helper()
	for _, c := range conventions {
		for _, reads := range readsHere() {
			all = append(all, Options{Seed: seed, Convention: c, Reads: reads})
		}
	}
	text := os.Getenv("PROVE_SEED")
	switch n, err := strconv.Atoi(text); {
	case os.Getenv("PROVE_FULL") == "1":
		return all
	case text == "":
		return nil
	case err != nil:
		t.Fatal(err)
		return nil
	default:
		t.Logf("PROVE_SEED=%d", n)
		return all[n%len(all):][:1]
	}
}

func proveKernel(t *testing.T, path string) {
	t.Helper()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	file, err := oracle.Open(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range wholes(t) {
		r, err := Image(context.Background(), img, file, o)
		if err != nil {
			t.Fatal(err)
		}
		check(t, r)
		if img.Arch().Name != runtime.GOARCH {
			continue // the verifier knows its own registers alone
		}
		v, err := verify.Image(context.Background(), img, how(o))
		if err != nil || v.Accepted != v.Prologues || v.Prologues < 10000 {
			t.Errorf("verifier, convention %d, %v reads: %d of %d accepted, %v\n%q", o.Convention, o.Reads, v.Accepted, v.Prologues, err, v.Rejected)
		}
	}
	if os.Getenv("PROVE_FULL") == "1" {
		return
	}
	for _, text := range []string{"get_page page", "kmalloc size flags", "timespec64_add lhs rhs", "fdput fd", "tcp_s* sk size", "vfs_read file buf count pos name=file->f_path.dentry->d_iname:string $comm",
		"vfs_read file->f_path.dentry->d_name.name file->f_inode->i_mode file->f_path.dentry->d_iname[2]", "tcp_s* sk->__sk_common.skc_state sk->sk_userlocks"} {
		def, err := probe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(context.Background(), img, def, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, reads := range readsHere() {
			r, err := Plan(context.Background(), p, file, Options{Seed: seed, Reads: reads})
			if err != nil {
				t.Fatal(err)
			}
			if r.Values != r.Agreed {
				t.Errorf("%s: %v", text, r.Disagreements)
			}
			t.Logf("%s: %v", text, r)
		}
	}
}

// TestUserPrograms does the same for user space: for this module's tool, which Go's compiler
// built, and for a C library with separate debug information.
func TestUserPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	bpfexec.RequireOrSkip(t)
	tool := filepath.Join(t.TempDir(), "prolog-dump")
	testenv.Build(t, tool, nil, "../../../cmd/prolog-dump")
	libc := "/lib/x86_64-linux-gnu/libc.so.6"
	for _, path := range []string{tool, libc} {
		img, err := dwarfloc.Open(path, nil)
		if path == libc && (errors.Is(err, dwarfloc.ErrNoDWARF) || errors.Is(err, os.ErrNotExist)) {
			testenv.Missing(t, "no debug information of the C library (package libc6-dbg): %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		c, err := coverage.Measure(context.Background(), img)
		if err != nil || c.Entry.Located < 1000 || c.Inline.Located < 1000 {
			t.Errorf("%s: coverage: %d and %d located, %v", path, c.Entry.Located, c.Inline.Located, err)
		}
		file, err := oracle.Open(t.Context(), path, inside.File(img).DebugPath())
		if err != nil {
			t.Fatal(err)
		}
		r, err := Image(context.Background(), img, file, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		check(t, r)
	}
}
