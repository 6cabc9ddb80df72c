package image

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goProgram returns a small Go program, built with flags of the linker.
func goProgram(tb testing.TB, flags string) []byte {
	tb.Helper()
	dir := tb.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"x\") }\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-ldflags="+flags, "-o", path, source).CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	d, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// TestGoSymbols: a stripped program has the same functions as one with symbols, by Go's own table, also where functions of C are before them.
func TestGoSymbols(t *testing.T) {
	for _, link := range []string{"", "-linkmode=external "} {
		if _, err := exec.LookPath("gcc"); err != nil && link != "" {
			if os.Getenv("CI") == "true" {
				t.Error("gcc is not installed")
			}
			continue
		}
		whole, err := FromBytes("whole", goProgram(t, link+"-w"), nil)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := FromBytes("bare", goProgram(t, link+"-s -w"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := bare.IsGo(); !known || bare.own.file.SectionByType(elf.SHT_SYMTAB) != nil {
			t.Fatal("no stripped program of Go")
		}
		at := make(map[string][]uint64) // several functions may have a name, one for each convention
		for s := range whole.Symbols() {
			name := strings.TrimSuffix(s.Name, ".abi0")
			at[name] = append(at[name], s.Addr)
		}
		n, other := 0, 0
		for s := range bare.Symbols() {
			if !strings.Contains(s.Name, ".") {
				continue // of C
			}
			n++
			switch w, ok := at[s.Name]; {
			case !ok:
				other++
			case !slices.Contains(w, s.Addr):
				t.Fatalf("%s is at %#x, with symbols at %#x", s.Name, s.Addr, w)
			}
			if s.Global || s.Label {
				t.Errorf("%+v", s)
			}
			if in := bare.SymbolAt(s.Addr+1, ""); s.Name == "main.main" && (in == nil || in.Name != "main.main") {
				t.Errorf("in main.main is %v", in)
			}
		}
		if n < 1000 || other > n/50 {
			t.Errorf("%d functions, of which %d have no symbol in the whole program", n, other)
		}
	}
}

// FuzzGoSymbols: whatever the table has, the file has symbols in its code, or none.
func FuzzGoSymbols(f *testing.F) {
	program := goProgram(f, "-s -w")
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		f.Fatal(err)
	}
	table := file.Section(".gopclntab")
	f.Add(uint32(0), uint64(0))
	f.Add(uint32(8), uint64(1)<<40-39) // so many functions are not in the file
	f.Add(uint32(64), uint64(0xffffffff))
	f.Fuzz(func(t *testing.T, at uint32, value uint64) {
		d := bytes.Clone(program)
		off := table.Offset + uint64(at)%(table.Size-8)
		for i := range 8 {
			d[off+uint64(i)] = byte(value >> (8 * i))
		}
		img, err := FromBytes("test", d, nil)
		if err != nil {
			return
		}
		for s := range img.Symbols() {
			if sec := img.SectionAt(s.Addr); sec == nil {
				t.Fatalf("%+v is in no section", s)
			}
		}
	})
}
