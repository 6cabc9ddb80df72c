package guest_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/guest"
)

// TestSpans traces whole runs in live kernels: of a function out of line, with what its arguments
// and its result are known to be, and of bodies that are inlined into it. Each call is one run.
func TestSpans(t *testing.T) { eachKernel(t, runSpans) }

// Whole runs of vfs_write, and of what each pread64 runs once. Not vfs_read of many tasks: the task
// that collects the output reads it, and each of its reads would be a hit that makes more output.
var (
	writeSpan  = regexp.MustCompile(`(?m)  vfs_write(?: at \S+)?  name="null"  count=(\d+)  retval=(\d+)  \S+s$`)
	inlineSpan = regexp.MustCompile(`(?m)  (ksys_pread64|fdput|rw_verify_area) \S.*  \S+s$`)
)

func runSpans(t *testing.T, k testKernel) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", dir, "github.com/bpfprologue/bpfprologue/cmd/prolog-dump")
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOARCH="+k.GOARCH)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const image, toolPath = "/debug/vmlinux", "/prolog-dump"
	trace := func(definitions ...string) []string {
		c := append([]string{toolPath, "--no-cache", "-k", image, "trace", "--span"}, definitions...)
		return append(c, "--", "/init", guest.Calls)
	}
	task := &guest.Task{
		KASLR: true, Limit: 8 * time.Minute,
		Files: map[string]string{toolPath: filepath.Join(dir, "prolog-dump"), image: k.Vmlinux},
		Calls: []guest.Call{
			call("openat", number(-100), text("/dev/null"), number(unix.O_RDWR), number(0)),
			call("write", result(0), memory(4), number(1)),
			call("write", result(0), memory(4), number(2)),
			call("write", result(0), memory(4), number(3)),
			call("pwrite64", result(0), memory(4), number(4), number(0)),
			call("pread64", result(0), memory(4), number(4), number(0)),
		},
		Commands: [][]string{
			trace("vfs_write name=file->f_path.dentry->d_name.name:string count"),
			trace("ksys_pread64 count"),
		},
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range r.Outputs {
		if o.Failed != "" {
			t.Fatalf("%q: %s\n%s", task.Commands[i], o.Failed, o.Err)
		}
		t.Log(o.Err, o.Out)
	}
	var runs []string
	for _, m := range writeSpan.FindAllStringSubmatch(r.Outputs[0].Out, -1) {
		runs = append(runs, m[1]+":"+m[2])
	}
	if got, want := strings.Join(runs, " "), "1:1 2:2 3:3 4:4"; got != want {
		t.Errorf("runs of vfs_write, count:retval: %s; want %s", got, want)
	}
	if n := len(inlineSpan.FindAllString(r.Outputs[1].Out, -1)); n != 1 {
		t.Errorf("%d runs of ksys_pread64", n)
	}
	for i := range r.Outputs {
		if strings.Contains(r.Outputs[i].Err, "not seen") {
			t.Errorf("unpaired: %s", r.Outputs[i].Err)
		}
	}
}
