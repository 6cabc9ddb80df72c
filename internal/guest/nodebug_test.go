package guest_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/guest"
)

// TestWithoutDebugInformation traces live kernels in guests that have no file with debug information.
func TestWithoutDebugInformation(t *testing.T) { eachKernel(t, traceWithoutDebug) }

func traceWithoutDebug(t *testing.T, k testKernel) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", dir, "github.com/bpfprologue/bpfprologue/cmd/prolog-dump")
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOARCH="+k.GOARCH)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const tool = "/prolog-dump"
	trace := func(args ...string) []string {
		return append(append([]string{tool}, args...), "--", "/init", guest.Calls)
	}
	task := &guest.Task{
		KASLR: true, Limit: 4 * time.Minute, Module: "/tun.ko",
		Files: map[string]string{tool: filepath.Join(dir, "prolog-dump"), "/tun.ko": k.Module},
		Calls: []guest.Call{
			call("openat", number(-100), text("/dev/net/tun"), number(unix.O_RDWR), number(0)),
			call("ioctl", result(0), number(18193), number(4660)),
			call("openat", number(-100), text("/proc/version"), number(unix.O_RDONLY), number(0)),
			call("read", result(2), memory(64), number(37)),
		},
		Commands: [][]string{
			trace("trace", "vfs_read file->f_path.dentry->d_name.name:string count"),
			trace("trace", "vfs_read%return bytes=$retval"),
			trace("trace", "module=tun;tun_chr_ioctl cmd arg"),
			trace("stat", "vfs_read count", "--by", "count"),
		},
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`(?m)vfs_read( at \S+)?  name="version"  count=37$`, `(?m)vfs_read( at \S+)?  bytes=37$`,
		`(?m)  tun_chr_ioctl( at \S+)?  cmd=18193  arg=4660$`, `(?m)^ *\d+ +37$|(?m)^ *37 +\d+$`,
	} {
		if i >= len(r.Outputs) {
			t.Fatalf("%d commands ended, of %d", len(r.Outputs), len(task.Commands))
		}
		o := &r.Outputs[i]
		t.Logf("%q:\n%s%s", task.Commands[i], o.Err, o.Out)
		if o.Failed != "" || !regexp.MustCompile(want).MatchString(o.Out) {
			t.Errorf("%q: %s: no %s", task.Commands[i], o.Failed, want)
		}
	}
}
