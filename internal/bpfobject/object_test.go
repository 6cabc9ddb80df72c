package bpfobject_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/internal/bpfobject"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// nothing is a program that calls a function: r2 = 0, r3 = 0, call, exit.
var nothing = []byte{0xb7, 2, 0, 0, 0, 0, 0, 0, 0xb7, 3, 0, 0, 0, 0, 0, 0, 0x85, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// isDefinition takes all sections of programs for definitions.
func isDefinition(string) bool { return true }

// rewrite replaces all programs of an object.
func rewrite(b []byte) ([]byte, map[string]string, error) {
	o, err := bpfobject.Read(b)
	if err != nil {
		return nil, nil, err
	}
	programs := o.Definitions(isDefinition)
	for name := range programs {
		if err := o.Replace(name, &bpfobject.Code{Section: "uprobe", Insns: nothing, Call: 16, Line: "a line"}); err != nil {
			return nil, nil, err
		}
		o.Table("sites_"+name, []bpfobject.Field{{Name: "offset", Size: 8}, {Name: "where", Size: 8, Text: true}}, []byte("\x10\x00\x00\x00\x00\x00\x00\x00main\x00\x00\x00\x00"))
	}
	out, err := o.Bytes()
	return out, programs, err
}

// TestRewrite: what is written is read again by this package and by cilium/ebpf, with the same maps, programs of the same names, and types
// for both functions.
func TestRewrite(t *testing.T) {
	for _, path := range []string{"../../examples/hits/bpf/hits.o", "../../examples/events/bpf/events.o", "../../instances/testdata/func.o", "../../instances/testdata/record.o"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			before, err := ebpf.LoadCollectionSpec(path)
			if err != nil {
				t.Fatal(err)
			}
			b, programs, err := rewrite(read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bpfobject.Read(b); err != nil {
				t.Errorf("read again: %v", err)
			}
			after, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			for name := range before.Maps {
				if after.Maps[name] == nil {
					t.Errorf("no map %s", name)
				}
			}
			if after.Maps[".rodata.sites"] == nil || len(programs) == 0 {
				t.Errorf("no table, or none of the programs %v", programs)
			}
			for name := range programs {
				p := after.Programs[name]
				if p == nil || p.SectionName != "uprobe" || len(p.Instructions) <= 4 || p.Instructions[4].Symbol() != name+"_user" {
					t.Errorf("program %s: %+v", name, p)
				}
				var table [16]byte
				if err := after.Variables["sites_"+name].Get(&table); err != nil || table[0] != 0x10 {
					t.Errorf("table of %s: %v, %v", name, table, err)
				}
			}
		})
	}
}

// TestOddObjects: what cannot be rewritten is an error that says why.
func TestOddObjects(t *testing.T) {
	clang := testenv.Tool(t, "clang-14")
	compile := func(text string, flags ...string) []byte {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.c"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(clang, append([]string{"-O2", "-target", "bpf", "-c", "-o", "p.o", "p.c"}, flags...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return read(t, filepath.Join(dir, "p.o"))
	}
	const one = `__attribute__((section("func=f n"))) int func(void *ctx, int err, long n) { return n; }` + "\n"
	amd64 := read(t, "/proc/self/exe")
	for _, tt := range []struct {
		what string
		b    []byte
		want string
	}{
		{"without BTF", compile(one), "no BTF: compile it with clang -g"},
		{"two programs in a section", compile(one+`__attribute__((section("func=f n"))) int again(void *ctx, int err, long n) { return n + 1; }`, "-g"), "more than the program"},
		{"a static function in the section", compile(`static __attribute__((noinline, section("func=f n"))) int own(long n) { return n * n; }`+"\n"+
			`__attribute__((section("func=f n"))) int func(void *ctx, int err, long n) { return own(n); }`, "-g"), "more than the program"},
		{"big-endian", compile(one, "-g", "-target", "bpfeb"), "big-endian"},
		{"another machine's", amd64, "not an object file of BPF programs"},
		{"text", []byte("not an object"), "EOF"},
		{"empty", nil, "EOF"},
	} {
		_, _, err := rewrite(tt.b)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.want)
		}
	}
	if _, _, err := rewrite(compile(one, "-g")); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// FuzzObject: whatever is damaged, reading and rewriting ends with an error or an ELF file, and does not panic.
func FuzzObject(f *testing.F) {
	for _, path := range []string{"../../examples/hits/bpf/hits.o", "../../instances/testdata/func.o"} {
		b := read(f, path)
		f.Add(b, uint32(0), uint32(0))
		f.Add(b, uint32(40), uint32(0xffff))
		e, err := elf.NewFile(bytes.NewReader(b))
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range []string{".BTF", ".BTF.ext", ".symtab"} {
			s := e.Section(name)
			for at := uint64(0); at < min(s.Size, 96); at += 4 {
				f.Add(b, uint32(s.Offset+at), uint32(0xfffffff0))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, at, word uint32) {
		b = bytes.Clone(b)
		if int(at)+4 <= len(b) {
			binary.LittleEndian.PutUint32(b[at:], word)
		}
		out, _, err := rewrite(b)
		if err != nil {
			return
		}
		if _, err := elf.NewFile(bytes.NewReader(out)); err != nil {
			t.Errorf("what was written is no ELF file: %v", err)
		}
	})
}
