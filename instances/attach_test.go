package instances_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// counting is a plan whose programs count the hits of each site in a map, by the cookie.
func counting(t *testing.T, img *dwarfloc.Image, text string, o plan.Options) (p *plan.Plan, programs []*ebpf.Program, hits *ebpf.Map) {
	t.Helper()
	p = plantest.New(t, img, text, o)
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(p.Sites))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hits.Close() })
	specs, err := instances.ProgramSpecs(p, &ebpf.ProgramSpec{Name: "count", License: "GPL", Instructions: asm.Instructions{
		asm.FnGetAttachCookie.Call(),
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, hits.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range specs {
		prog, err := ebpf.NewProgram(s)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		t.Cleanup(func() { _ = bpfexec.Close(prog) })
		programs = append(programs, prog)
	}
	return p, programs, hits
}

// TestPartial: of some sites one is refused. The others are attached and count; when all
// had to be, none is.
func TestPartial(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	path, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, multi := range []bool{false, r.Target().UprobeMulti} {
		// Two sites share their address here, as those of calls inlined at one place do.
		p, programs, hits := counting(t, img, "m[aiu]*", plan.Options{Target: plan.Target{UprobeMulti: multi}})
		if len(p.Sites) != 3 || len(p.Instances) != 1 || p.Instances[0].Multi != multi {
			t.Fatalf("uprobe.multi %v: %d sites, %d instances", multi, len(p.Sites), len(p.Instances))
		}
		move := func(site int, addr uint64) {
			moved := *p.Sites[site].Site
			moved.Addr = addr
			p.Sites[site].Site = &moved
		}
		move(0, p.Sites[1].Addr)
		move(2, 1<<40) // not in the file
		count := func() (n [3]uint64) {
			cmd := exec.Command(path)
			cmd.Stdin = strings.NewReader("x")
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if err := hits.Lookup(uint32(i), &n[i]); err != nil {
					t.Fatal(err)
				}
			}
			return n
		}
		if a, err := instances.Attach(context.Background(), p, programs, r, instances.AttachOptions{All: true}); !errors.Is(err, instances.ErrRefused) || a != nil {
			t.Fatalf("%v: all: %v", multi, err)
		}
		if n := count(); n != [3]uint64{} {
			t.Errorf("%v: %v hits of what is not attached", multi, n)
		}
		steps := 0
		a, err := instances.Attach(context.Background(), p, programs, r, instances.AttachOptions{Progress: func(done, total int) {
			if steps = done; total != 3 {
				t.Errorf("%v: %d of %d", multi, done, total)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(a.Attached, []int{0, 1}) || len(a.Refused) != 1 || a.Refused[0].Site != 2 || steps != 3 {
			t.Errorf("%v: attached %v, refused %v, %d steps", multi, a.Attached, a.Refused, steps)
		}
		if n := count(); n != [3]uint64{1, 1, 0} {
			t.Errorf("%v: hits %v", multi, n)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != [3]uint64{1, 1, 0} {
			t.Errorf("%v: hits %v after the end", multi, n)
		}
		move(0, 1<<40)
		move(1, 1<<40)
		if a, err := instances.Attach(context.Background(), p, programs, r, instances.AttachOptions{}); !errors.Is(err, instances.ErrRefused) || a != nil {
			t.Errorf("%v: all are refused: %v", multi, err)
		}
	}
}

// TestHandlers: what cannot handle a definition's hits says so before anything is loaded.
func TestHandlers(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	spec := hitsObject(t)
	user := spec.Programs["func"] // ctx, err, key
	for _, tt := range []struct {
		section string
		kind    ebpf.ProgramType
		want    string
	}{
		{"e=my_func_*_abcd arg1", ebpf.UnspecifiedProgram, ""},
		{"e=my_func_*_abcd arg1", ebpf.Kprobe, ""},
		{"e=my_func_*_abcd", ebpf.Kprobe, `program func: instance 0: not a program for the definition: func has 3 parameters, and "e=my_func_*_abcd" gives it ctx, err and 0 arguments`},
		{"e=my_func_*_abcd arg1", ebpf.XDP, "program func: not a program for the definition: it is of the type XDP"},
	} {
		user.SectionName, user.Type = tt.section, tt.kind
		_, err := instances.Expand(context.Background(), spec, func(*probe.Definition) (instances.Subject, error) {
			return instances.Subject{Image: img}, nil
		})
		switch {
		case tt.want == "":
			if err != nil {
				t.Errorf("%s: %v", tt.section, err)
			}
		case !errors.Is(err, instances.ErrProgramMismatch) || !strings.HasPrefix(err.Error(), tt.want):
			t.Errorf("%s: %v, want %s", tt.section, err, tt.want)
		}
	}
}

// TestNothing: a plan that leaves all its sites out is not silently attached nowhere.
func TestNothing(t *testing.T) {
	_, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	p := plantest.New(t, img, "add lhs.b", plan.Options{Missing: plan.MissingSkip})
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.NumProbes() != 0 {
		t.Fatalf("%d sites", p.NumProbes())
	}
	if a, err := instances.Attach(context.Background(), p, nil, r, instances.AttachOptions{}); !errors.Is(err, plan.ErrMissingArgument) || a != nil {
		t.Errorf("%v", err)
	}
}

// TestUnpatched: probes of the image's own file do not change what is read from it.
func TestUnpatched(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	_, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, programs, _ := counting(t, img, "m[aiu]*", plan.Options{Target: r.Target()})
	code := func() (out [][]byte) {
		for i := range p.Sites {
			d, err := inside.File(img).Bytes(p.Sites[i].Addr, 4)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, bytes.Clone(d))
		}
		return out
	}
	before := code()
	a, err := instances.Attach(context.Background(), p, programs, r, instances.AttachOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if diff := cmp.Diff(before, code()); diff != "" {
		t.Errorf("before and with probes (-before +now):\n%s", diff)
	}
}

// TestReplaced: probes are made in the file that was read, or nowhere.
func TestReplaced(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	replace := func(path string) error {
		d, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(path+".new", d, 0o700), os.Rename(path+".new", path))
	}
	write := func(path string) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		d, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(path, d, 0o700), os.Chtimes(path, st.ModTime(), st.ModTime()))
	}
	pipe := func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }
	for what, change := range map[string]func(string) error{"replaced": replace, "written to": write, "a pipe": pipe} {
		for _, asPath := range []bool{false, true} {
			path, img := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
			o := instances.FindOptions{}
			if asPath {
				o.Path = path + ".copy"
				d, err := os.ReadFile(path)
				if err := errors.Join(err, os.WriteFile(o.Path, d, 0o700)); err != nil {
					t.Fatal(err)
				}
				path = o.Path
			}
			r, err := instances.Find(img, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, multi := range []bool{false, r.Target().UprobeMulti} {
				p, programs, _ := counting(t, img, "m[aiu]*", plan.Options{Target: plan.Target{UprobeMulti: multi}})
				a, err := instances.Attach(t.Context(), p, programs, r, instances.AttachOptions{})
				if err != nil {
					t.Fatalf("%s: before: %v", what, err)
				}
				_ = a.Close()
			}
			p, programs, _ := counting(t, img, "m[aiu]*", plan.Options{Target: plan.Target{}})
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if a, err := instances.Attach(t.Context(), p, programs, r, instances.AttachOptions{}); !errors.Is(err, dwarfloc.ErrChanged) {
				t.Errorf("%s (another path %v): %v", what, asPath, err)
				_ = a.Close()
			}
		}
	}
}
