package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// packDefinitions are definitions of what packs tell.
var packDefinitions = []string{
	"*", "* $params", "inlines=no; * $params", "*%return $retval", "*%return r=$retval $frame", "*%exit $retval", "* a=$frame $caller $comm",
	"* %ax %sp $stack $stack1", "* n=sizeof(int)", "my_func_*_abcd if=arg1>3 arg1", "page_enter $params page->ref",
	"*@*.c $params", "no_such|page_pin $params", "no_such", "my_func_* nothing",
}

// compareAnswers asks an image and its pack the same, and returns how many bytes both said. The image's path is in
// neither's output but in errors, where both have the same name.
func compareAnswers(t *testing.T, image, pack, definition string) int {
	t.Helper()
	ask := func(path string) (string, string) {
		c := toolCommand(t, nil, "--no-cache", "-x", path, "--format", "json", definition)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := c.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return strings.ReplaceAll(out.String(), path, "IMAGE"), strings.ReplaceAll(errs.String(), path, "IMAGE")
	}
	a, aErr := ask(image)
	b, bErr := ask(pack)
	if a != b {
		la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
		for i := range la {
			if i >= len(lb) || la[i] != lb[i] {
				other := ""
				if i < len(lb) {
					other = lb[i]
				}
				t.Errorf("%s: %s: line %d of the image's answer:\n%s\nof the pack's:\n%s\n%s", filepath.Base(image), definition, i+1, la[i], other, bErr)
				break
			}
		}
	}
	if (aErr == "") != (bErr == "") {
		t.Errorf("%s: %s: the image says %q, the pack %q", filepath.Base(image), definition, aErr, bErr)
	}
	return len(a)
}

func writePack(t *testing.T, image string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.pack")
	if out, err := toolCommand(t, nil, "pack", "write", "--no-cache", "-o", path, image).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestPacksAnswer: a pack's answers are the image's, byte by byte.
func TestPacksAnswer(t *testing.T) {
	for _, name := range []string{
		"basic-clang14-O0-dwarf5.elf", "basic-clang14-O2-dwarf4.elf", "basic-gcc12-O0-dwarf5.elf", "basic-gcc12-O2-dwarf5.elf", "lib-gcc12-O2-dwarf5.elf",
		"module-clang14-O2-dwarf5.ko", "module-gcc12-O2-dwarf5.ko", "object-clang14-arm64-O0-dwarf5.o", "run-gcc12-O2-dwarf5.exe",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := fixtures.Bytes(name)
			if err != nil {
				t.Fatal(err)
			}
			image := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(image, d, 0o600); err != nil {
				t.Fatal(err)
			}
			pack := writePack(t, image)
			for _, definition := range packDefinitions {
				compareAnswers(t, image, pack, definition)
			}
		})
	}
}

// TestPackOfKernel: so are those of a kernel's pack. PACKS_FULL=1 asks for all sites.
func TestPackOfKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a pack of a kernel")
	}
	image := testenv.Vmlinux(t)
	pack := writePack(t, image)
	definitions := []string{"kmalloc size flags", "get_page $params", "tcp_*%return $retval", "vfs_* $params", "ext4_*%exit", "schedule* $frame $caller"}
	if os.Getenv("PACKS_FULL") == "1" {
		definitions = append(definitions, "* $params", "inlines=no; *%return $retval", "* $frame $caller")
	}
	for _, definition := range definitions {
		t.Logf("%s: %d bytes", definition, compareAnswers(t, image, pack, definition))
	}
}

// TestPackDir: the pack of a program without debug information is found by its build ID, alone or in an archive; one
// of another build is reported.
func TestPackDir(t *testing.T) {
	program, _ := testenv.Program(t, "run-gcc12-O2-dwarf5.exe")
	stripped := filepath.Join(t.TempDir(), "stripped")
	if out, err := exec.Command(testenv.Tool(t, "strip"), "-g", "-o", stripped, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id := testenv.Open(t, program).BuildID()
	pack := writePack(t, program)
	dirs := t.TempDir()
	for name, write := range map[string]func(dir string) error{
		"alone": func(dir string) error { return os.Link(pack, filepath.Join(dir, id+".pack")) },
		"archived": func(dir string) error {
			out, err := toolCommand(t, nil, "pack", "archive", "-o", filepath.Join(dir, "all.packs"), pack).CombinedOutput()
			if err != nil {
				t.Logf("%s", out)
			}
			return err
		},
	} {
		dir := filepath.Join(dirs, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), write(dir)); err != nil {
			t.Fatal(err)
		}
		out, err := toolCommand(t, nil, "--no-cache", "--pack-dir", dir, "-x", stripped, "--sites", "mix $params").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "mix $params: 2 sites of 1 function (0 out of line, 2 inlined), 2 instances") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	other := writePack(t, func() string { path, _ := testenv.Program(t, "run-clang14-O2-dwarf5.exe"); return path }())
	wrong := filepath.Join(dirs, "wrong")
	if err := errors.Join(os.Mkdir(wrong, 0o700), os.Link(other, filepath.Join(wrong, id+".pack"))); err != nil {
		t.Fatal(err)
	}
	out, err := toolCommand(t, nil, "--no-cache", "--pack-dir", wrong, "-x", stripped, "mix $params").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the pack is of build ID ") || !strings.Contains(string(out), id) {
		t.Errorf("the pack of another build: %v\n%s", err, out)
	}
}
