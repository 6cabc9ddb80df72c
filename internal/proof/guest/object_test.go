package guest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestObject: a loader in C, with libbpf and the header of the example, attaches an object that the tool wrote to a kernel that is not where
// it was linked to be. The values are those of its system calls, and of a variable of the kernel. For another kernel it says so.
func TestObject(t *testing.T) {
	t.Parallel()
	// Debian has the library to link with for this machine's architecture alone.
	onKernels(t, someOf(t, kernelsOfPC(t)), func(t *testing.T, k testKernel) {
		dir := t.TempDir()
		build := ids(t, dir)
		other := ""
		for _, o := range kernels(t) {
			if o.GOARCH == k.GOARCH && o.Vmlinux != k.Vmlinux {
				other = o.Vmlinux
			}
		}
		task := &guest.Task{
			KASLR: true,
			Files: map[string]string{"/ids": build(k.Vmlinux, "ids")}, Commands: [][]string{{"/ids"}},
		}
		if other != "" {
			task.Files["/other"] = build(other, "other")
			task.Commands = append(task.Commands, []string{"/other"})
		}
		r, err := k.Boot(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		const calls, first = 100, 0x40000000
		want := fmt.Sprintf("2 probes, 0 refused: %d hits, 0 without a value, pids %d, processors %d\n", 2*calls, calls*first+calls*(calls+1)/2, 2*calls)
		if o := r.Outputs[0]; r.Done.Slide == 0 || o.Failed != "" || o.Out != want {
			t.Errorf("moved by %#x: %s %s\n%s, want\n%s", r.Done.Slide, o.Failed, o.Err, o.Out, want)
		}
		if other != "" && !strings.Contains(r.Outputs[1].Err, "Stale") {
			t.Errorf("with the object of another kernel: %+v", r.Outputs[1])
		}
	})
}

// ids returns a function that builds the loader, with the object for a kernel in it, under a name.
func ids(t *testing.T, dir string) func(kernel, name string) string {
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
		}
		return string(out)
	}
	header, err := filepath.Abs("../../../examples/libbpf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	gcc, bpftool, tool := testenv.Tool(t, "gcc-12"), testenv.Tool(t, "bpftool"), filepath.Join(dir, "prolog-dump")
	include := "-I/usr/include/" + strings.TrimSpace(run(gcc, "-print-multiarch"))
	testenv.Build(t, tool, nil, "github.com/bpfprologue/bpfprologue/cmd/prolog-dump")
	run(testenv.Tool(t, "clang-14"), "-O2", "-g", "-target", "bpf", include, "-c", "-o", "ids.bpf.o", "ids.bpf.c")
	return func(kernel, name string) string {
		run(tool, "object", "ids.bpf.o", "-k", kernel, "-o", "ids.o")
		skeleton := run(bpftool, "gen", "skeleton", "ids.o", "name", "ids_bpf")
		if err := os.WriteFile(filepath.Join(dir, "ids.skel.h"), []byte(skeleton), 0o600); err != nil {
			t.Fatal(err)
		}
		run(gcc, "-static", "-O2", "-I"+header, "-I.", "-o", name, "ids.c", "-lbpf", "-lelf", "-lz")
		return filepath.Join(dir, name)
	}
}
