package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestNamed: an image is named as people name programs and libraries: without its folder, and not at all where a command runs it.
func TestNamed(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "named-program")
	c := exec.Command(testenv.Tool(t, "gcc-12"), "-g", "-O2", "-x", "c", "-o", program, "-")
	c.Stdin = strings.NewReader("volatile int sink;\n__attribute__((noinline)) void named(int n) { sink = n; }\nint main(void) { named(41); return 0; }\n")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, args := range [][]string{
		{"trace", "-x", "named-program", "named n", "--", program},
		{"trace", "named n", "--", program},
		{"trace", "named n", "--", "named-program"},
		{"trace", "exec=named-program; named n", "--", "named-program"},
	} {
		out, err := toolCommand(t, nil, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "n=41") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	// A function that the program does not have is the kernel's; if neither has it, both are named.
	out, err := toolCommand(t, nil, "trace", "vfs_no_such_function n", "--", program).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "and "+program+": no function matches") {
		t.Errorf("nobody's function: %v\n%s", err, out)
	}
	source := filepath.Join(dir, "prog.bpf.c")
	if err := os.WriteFile(source, []byte("#include <linux/bpf.h>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"trace", "--object", source}, {"object", source, "-x", program, "-o", filepath.Join(dir, "out.o")}} {
		out, err := toolCommand(t, nil, args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is no object file: it is source, which clang -target bpf -g -O2 -c compiles") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
