package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// waiterSource says that it is there, and calls touch for each byte that it reads.
const waiterSource = `
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void touch(int who) { sink += who; }
int main(void) {
	char c;
	if (write(1, "r", 1) != 1) return 1;
	while (read(0, &c, 1) == 1) touch(c);
	return 0;
}
`

// waiter builds a program without libraries.
func waiter(t *testing.T, out string) {
	t.Helper()
	if err := os.WriteFile(out+".c", []byte(waiterSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(testenv.Tool(t, "gcc-12"), "-static", "-g", "-O2", "-o", out, out+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// begin starts a program that says when it is there; the test ends it.
func begin(t *testing.T, c *exec.Cmd) (in io.Writer) {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		if os.IsPermission(err) {
			t.Skip("it needs privileges: ", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return in
}

// TestPathOf: what a path means to a process with other file systems, or another root, is a file there, whatever links are on the
// way, and never one of this process's own.
func TestPathOf(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "only root can change its root")
	}
	dir := t.TempDir()
	waiter(t, filepath.Join(dir, "program"))
	inner := filepath.Join(dir, "inner")
	for _, d := range []string{"inner/sub", "jail/sub", "jail/usr/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Files of the same names that are not meant.
	for _, name := range []string{"inner/own", "inner/sub/own"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not it"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	links := `cd %[1]s && mkdir -p sub && ln %[2]s own 2>/dev/null || cp %[2]s own
ln -s %[3]s/own absolute; ln -s own relative; ln -s ../../../../../../../..%[3]s/own above
ln -s %[3]s/ sub/back; ln -s %[3]s/none broken; ln -s loop loop
`
	jail := filepath.Join(dir, "jail")
	inJail := exec.Command("/own")
	inJail.SysProcAttr = &syscall.SysProcAttr{Chroot: jail}
	if out, err := exec.Command("sh", "-c", fmt.Sprintf(links, jail, filepath.Join(dir, "program"), "")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Link(filepath.Join(jail, "own"), filepath.Join(jail, "usr/bin/tool")); err != nil {
		t.Fatal(err)
	}
	script := "mount -t tmpfs none %[1]s && " + links + "exec %[1]s/own"
	inNamespace := exec.Command("sh", "-c", fmt.Sprintf(script, inner, filepath.Join(dir, "program"), inner))
	inNamespace.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	for _, x := range []struct {
		name, root string
		c          *exec.Cmd
	}{{"another root", "", inJail}, {"another mount namespace", inner, inNamespace}} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, x.c)
			want, err := os.Stat(fmt.Sprintf("/proc/%d/exe", x.c.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/own", "/absolute", "/relative", "/above", "/sub/back/own", "/sub/../own", "/sub/back/absolute"} {
				got, err := procfile.Path(x.c.Process.Pid, x.root+path)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				if is, err := os.Stat(got); err != nil || !os.SameFile(is, want) {
					t.Errorf("%s: %s is another file; %v", path, got, err)
				}
			}
			for _, path := range []string{"/broken", "/loop", "/none"} {
				if got, err := procfile.Path(x.c.Process.Pid, x.root+path); err == nil || !strings.Contains(err.Error(), x.root+path) {
					t.Errorf("%s: %s, %v", path, got, err)
				}
			}
			if got, err := procfile.Path(x.c.Process.Pid, "sub/own"); err == nil || !strings.Contains(err.Error(), "name the file by its whole path there") {
				t.Errorf("%s, %v", got, err)
			}
			if got, err := procfile.Path(x.c.Process.Pid, "nowhere"); err == nil || !strings.Contains(err.Error(), "has mapped no file nowhere") {
				t.Errorf("%s, %v", got, err)
			}
			// A name is that of what it has mapped, or of a program there.
			names := []string{"own"}
			if x.root == "" {
				names = append(names, "tool")
			}
			for _, name := range names {
				all, err := procfile.Paths([]int{x.c.Process.Pid, x.c.Process.Pid, os.Getpid()}, name)
				if err != nil || len(all) != 1 {
					t.Errorf("%s: %q, %v", name, all, err)
					continue
				}
				if is, err := os.Stat(all[0]); err != nil || !os.SameFile(is, want) {
					t.Errorf("%s: %s is another file; %v", name, all[0], err)
				}
			}
			exe := fmt.Sprintf("/proc/%d/exe", x.c.Process.Pid)
			if got, err := procfile.Path(x.c.Process.Pid, exe); got != exe {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// TestReplaced: a process that runs a file which was there before the one of the name, or none of the kind, is told from one that
// has no hits.
func TestReplaced(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	program, other := filepath.Join(dir, "program"), filepath.Join(dir, "other")
	waiter(t, program)
	waiter(t, other)
	c := exec.Command(program)
	in := begin(t, c)
	pid := strconv.Itoa(c.Process.Pid)
	trace := func(path string, more ...string) (out, said string, err error) {
		tool := toolCommand(t, nil, append([]string{"-x", path, "trace", "--pid", pid, "--duration", "2s", "touch who"}, more...)...)
		var stdout, stderr bytes.Buffer
		tool.Stdout, tool.Stderr = &stdout, &stderr
		stop := make(chan struct{})
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					_, _ = in.Write([]byte("a"))
				}
			}
		}()
		err = tool.Run()
		close(stop)
		<-fed
		return stdout.String(), stderr.String(), err
	}
	if out, said, err := trace(program); err != nil || !strings.Contains(out, "who=97") || strings.Contains(said, "process") {
		t.Fatalf("as it was: %v\n%s%s", err, out, said)
	}
	if out, said, err := trace(other); err != nil || out != "" || !strings.Contains(said, other+": process "+pid+" does not map this file") {
		t.Errorf("another program: %v\n%s%s", err, out, said)
	}
	if err := os.Rename(other, program); err != nil {
		t.Fatal(err)
	}
	want := program + ": process " + pid + " runs another file, which was there before: restart it, or name that file: " +
		"-x /proc/" + pid + "/exe"
	if out, said, err := trace(program); err == nil || out != "" || !strings.Contains(said, want) {
		t.Errorf("replaced: %v\n%s%s", err, out, said)
	}
	if out, said, err := trace(program, "--force"); err != nil || out != "" || !strings.Contains(said, want) {
		t.Errorf("replaced, with --force: %v\n%s%s", err, out, said)
	}
	if out, said, err := trace("/proc/" + pid + "/exe"); err != nil || !strings.Contains(out, "who=97") {
		t.Errorf("by what it runs: %v\n%s%s", err, out, said)
	}
}

// TestOwnFiles: without -x, and with a name, each of several processes means its own file.
func TestOwnFiles(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	args := []string{"trace", "--max-hits", "2", "touch who"}
	var ins []io.Writer
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, name, "waiter")
		waiter(t, program)
		c := exec.Command(program)
		ins = append(ins, begin(t, c))
		args = append(args, "-p", strconv.Itoa(c.Process.Pid))
	}
	for _, more := range [][]string{nil, {"-x", "waiter"}} {
		tool := toolCommand(t, nil, append(args, more...)...)
		var stdout, stderr bytes.Buffer
		tool.Stdout, tool.Stderr = &stdout, &stderr
		if err := tool.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- tool.Wait() }()
		for i := 0; ; i++ { // in turn: both have probes when the two hits are there
			select {
			case err := <-ended:
				out := stdout.String()
				if err != nil || strings.Count(out, "who=") != 2 || strings.Contains(stderr.String(), "does not map") || strings.Count(stderr.String(), "attached at 1 of 1 site") != 2 {
					t.Errorf("%v: %v\n%s%s", more, err, out, stderr.String())
				}
			case <-time.After(50 * time.Millisecond):
				_, _ = ins[i%2].Write([]byte("a"))
				continue
			}
			break
		}
	}
}
