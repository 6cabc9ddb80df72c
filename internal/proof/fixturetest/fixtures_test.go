package fixturetest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/arch"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

const (
	dir    = "../../../testdata/vmlinux-fixtures"
	remedy = "run: make fixtures, look at the difference, commit it"

	maxPacked = 60 << 10 // bytes, of one committed image
)

// manifest is SHA256SUMS: sums of the sources and images, and the versions of the tools.
type manifest struct {
	tools []string          // "# name: version" lines
	sums  map[string]string // file, relative to dir: SHA-256 in hex
}

func readManifest(t *testing.T) manifest {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := manifest{sums: make(map[string]string)}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := sc.Text()
		if strings.HasPrefix(line, "#") {
			m.tools = append(m.tools, line)
			continue
		}
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || len(sum) != 2*sha256.Size {
			t.Fatalf("SHA256SUMS: invalid line %q", line)
		}
		m.sums[name] = sum
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if len(m.tools) == 0 || len(m.sums) == 0 {
		t.Fatalf("SHA256SUMS: %d tools, %d files", len(m.tools), len(m.sums))
	}
	return m
}

// TestImagesMatchManifest finds sources, recipes and images that changed since the images
// were built, without a compiler.
func TestImagesMatchManifest(t *testing.T) {
	m := readManifest(t)

	for name, want := range m.sums {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%v; %s", err, remedy)
			continue
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s has changed since the images were built: SHA-256 %s, SHA256SUMS has %s; %s", name, got, want, remedy)
		}
	}

	var present []string
	for _, pattern := range []string{"Makefile", "src/*", "*.gz"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("no file matches %s", pattern)
		}
		for _, f := range found {
			rel, err := filepath.Rel(dir, f)
			if err != nil {
				t.Fatal(err)
			}
			present = append(present, filepath.ToSlash(rel))
		}
	}
	for _, name := range present {
		if _, ok := m.sums[name]; !ok {
			t.Errorf("%s is not in SHA256SUMS; %s", name, remedy)
		}
	}

	var listed []string
	for name := range m.sums {
		if image, ok := strings.CutSuffix(name, ".gz"); ok {
			listed = append(listed, image)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(listed, all()); diff != "" {
		t.Errorf("images in SHA256SUMS (-) and embedded (+) differ:\n%s", diff)
	}
}

// The pinned compilers turn the sources into the committed bytes.
func TestRebuild(t *testing.T) {
	m := readManifest(t)

	missing := t.Skipf
	if os.Getenv("CI") == "true" {
		missing = t.Fatalf
	}
	if _, err := exec.LookPath("make"); err != nil {
		missing("%v", err)
	}
	out, err := command("make", "-s", "--no-print-directory", "-C", dir, "versions").Output()
	if err != nil {
		t.Fatalf("make versions: %v", err)
	}
	have := strings.Split(strings.TrimSpace(string(out)), "\n")
	if diff := cmp.Diff(m.tools, have); diff != "" {
		missing("the images were built by other tools than there are here (make deps installs them), recorded (-) and here (+):\n%s", diff)
	}

	tmp := t.TempDir()
	if out, err := command("make", "-s", "-C", dir, "OUT="+tmp).CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	built, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != len(all()) {
		t.Errorf("the recipe makes %d images, %d are committed", len(built), len(all()))
	}
	for _, name := range all() {
		committed, err := fixtures.Bytes(name)
		if err != nil {
			t.Error(err)
			continue
		}
		fresh, err := os.ReadFile(filepath.Join(tmp, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(committed, fresh) {
			t.Errorf("%s: the committed image (%d bytes) is not what its sources give (%d bytes); %s", name, len(committed), len(fresh), remedy)
		}
	}
}

// all are the names of all committed images.
func all() []string {
	names := slices.Concat(fixtures.Names(), fixtures.Foreign(), fixtures.Relocatable(), fixtures.Programs())
	slices.Sort(names)
	return names
}

// command is exec.Command without the variables that an outer make (as in make test) sets.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
	return cmd
}

func TestImageContents(t *testing.T) {
	// The workplace of whoever built the images must not be in them.
	here, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range all() {
		t.Run(name, func(t *testing.T) {
			packed, err := os.Stat(filepath.Join(dir, name+".gz"))
			if err != nil {
				t.Fatal(err)
			}
			if packed.Size() > maxPacked {
				t.Errorf("%d bytes, want at most %d", packed.Size(), maxPacked)
			}
			image, err := fixtures.Bytes(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(image, []byte(here)) {
				t.Errorf("contains the path %s", here)
			}
			f, err := elf.NewFile(bytes.NewReader(image))
			if err != nil {
				t.Fatal(err)
			}

			var sections, symbols []string
			if slices.Contains(fixtures.Relocatable(), name) {
				if f.Type != elf.ET_REL {
					t.Errorf("type %v, want ET_REL", f.Type)
				}
				sections = []string{".text", ".debug_info", ".rela.debug_info"}
				symbols = []string{"my_func_lib_abcd", "session_current", "lib_opaque"}
				if strings.HasPrefix(name, "module-") {
					sections = append(sections, ".init.text", ".note.gnu.build-id", ".rela.debug_frame")
					symbols = []string{"my_func_one_abcd", "page_cache_init", "toy_ticks"}
				}
			} else if strings.HasPrefix(name, "run-") {
				if f.Type != elf.ET_EXEC {
					t.Errorf("type %v, want ET_EXEC", f.Type)
				}
				sections = []string{".text", ".debug_info", ".note.gnu.build-id"}
				symbols = []string{"scalars", "walk", "second", "root"}
			} else if strings.HasPrefix(name, "lib-") {
				if f.Type != elf.ET_DYN {
					t.Errorf("type %v, want ET_DYN", f.Type)
				}
				sections = []string{".text", ".eh_frame", ".debug_info", ".note.gnu.build-id"}
				symbols = []string{"my_func_lib_abcd", "session_write", "session_current"}
			} else if slices.Contains(fixtures.Foreign(), name) {
				machine, err := arch.ForELF(f.Machine, f.Class, f.Data)
				if f.Type != elf.ET_EXEC || err != nil || machine.Name != strings.Split(name, "-")[2] {
					t.Errorf("type %v, machine %v, %v, %v", f.Type, f.Machine, f.Class, f.Data)
				}
				sections = []string{".text", ".init.text", ".note.gnu.build-id", ".debug_info", ".debug_frame"}
				symbols = []string{"my_func_one_abcd", "my_func_two_abcd", "my_func_three_abcd", "page_cache_init", "toy_ticks"}
			} else {
				if f.Type != elf.ET_EXEC {
					t.Errorf("type %v, want ET_EXEC", f.Type)
				}
				if s := f.Section(".text"); s == nil || s.Addr != 0xffffffff81000000 {
					t.Errorf(".text is not at the kernel's address: %+v", s)
				}
				if f.Section(".eh_frame") != nil {
					t.Error("has .eh_frame: call frame information belongs in .debug_frame here")
				}
				sections = []string{
					".text", ".noinstr.text", ".init.text", ".exit.text", ".notes", "__bug_table",
					".altinstructions", ".debug_info", ".debug_frame",
				}
				symbols = []string{
					"my_func_one_abcd", "my_func_two_abcd", "my_func_three_abcd", "my_func_four_abce",
					"page_cache_init", "page_cache_exit", "page_enter", "page_trap", "page_forbidden",
					"__start_kprobe_blacklist", "__start___jump_table", "__start_static_call_sites",
				}
			}
			if strings.Contains(name, "gcc12-O2") && strings.HasPrefix(name, "basic-") {
				symbols = append(symbols, "ring_fill.isra.0", "pkt_scale.constprop.0", "pkt_drain.part.0", "queue_check.cold")
			}
			for _, s := range sections {
				if f.Section(s) == nil {
					t.Errorf("no section %s", s)
				}
			}
			if s := f.Section(".debug_info"); s != nil {
				compressed := s.Flags&elf.SHF_COMPRESSED != 0
				if want := strings.HasSuffix(name, "-gz.elf"); compressed != want {
					t.Errorf(".debug_info compressed: %v, want %v", compressed, want)
				}
			}
			table, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range symbols {
				if !slices.ContainsFunc(table, func(s elf.Symbol) bool { return s.Name == want }) {
					t.Errorf("no symbol %s", want)
				}
			}
		})
	}
}

func TestLoader(t *testing.T) {
	if len(fixtures.Names()) == 0 || len(fixtures.Foreign()) == 0 || len(fixtures.Relocatable()) == 0 {
		t.Fatal("no images")
	}
	name := fixtures.Names()[0]
	want, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s holds other bytes than Bytes(%q)", path, name)
	}

	if _, err := fixtures.Bytes("no-such.elf"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("Bytes of a missing image: %v, want fs.ErrNotExist with the names there are", err)
	}
	if _, err := fixtures.WriteTo(t.TempDir(), "no-such.elf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("WriteTo of a missing image: %v, want fs.ErrNotExist", err)
	}
}

// TestDemo: the image that a program carries alone is the one of its name.
func TestDemo(t *testing.T) {
	name, image, err := fixtures.Demo()
	if err != nil {
		t.Fatal(err)
	}
	want, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(image, want) {
		t.Errorf("%s is another image", name)
	}
}
