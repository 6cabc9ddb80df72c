package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// familySource calls touch(1) in itself, touch(2) in a child, touch(3) in a grandchild whose parent has ended, and the
// library's late, which it loads first; with an argument it waits for a line before.
const familySource = `
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void touch(int who) { sink += who; }
int main(int argc, char **argv) {
	int done[2];
	char c;
	if (pipe(done)) return 1;
	if (argc > 2 && (write(1, "r", 1) != 1 || read(0, &c, 1) != 1)) return 1;
	touch(1);
	if (fork() == 0) {
		pid_t parent = getpid();
		touch(2);
		if (fork() == 0) {
			while (getppid() == parent) usleep(1000);
			touch(3);
			if (write(done[1], "x", 1) != 1) return 1;
		}
		_exit(0);
	}
	wait(0);
	if (read(done[0], &c, 1) != 1) return 1;
	void *lib = dlopen(argv[1], RTLD_NOW);
	if (!lib) return 2;
	((void (*)(int))dlsym(lib, "late"))(4);
	return 0;
}
`

const lateSource = `volatile int sink; __attribute__((noinline)) void late(int who) { sink += who; }`

// toolCommand is the tool as a process of its own.
func toolCommand(t *testing.T, before []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "prolog-dump")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	words := append(append(before, link), args...)
	c := exec.Command(words[0], words[1:]...)
	c.Env = append(os.Environ(), "BPFPROLOGUE_CACHE="+t.TempDir())
	return c
}

var touched = regexp.MustCompile(`(?m)^ *[0-9.]+  \S+ +(\d+)  (touch|late)  who=(\d)$`)

// TestTargets: a command's hits are its own and its children's, in a PID namespace too; those of a process are
// its own, in another mount namespace too, and end with it; a library that is loaded later is traced.
func TestTargets(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	program, lib := filepath.Join(dir, "family"), filepath.Join(dir, "late.so")
	for _, b := range []struct {
		out, text string
		args      []string
	}{{program, familySource, nil}, {lib, lateSource, []string{"-shared", "-fPIC"}}} {
		source := b.out + ".c"
		if err := os.WriteFile(source, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(b.args, "-g", "-O2", "-o", b.out, source, "-ldl")
		if out, err := exec.Command(testenv.Tool(t, "gcc-12"), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	// Another instance runs over and over.
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = exec.Command(program, lib).Run()
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	who := func(text string) (out string, pids []int) {
		for _, m := range touched.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			out, pids = out+m[3], append(pids, n)
		}
		return out, pids
	}
	run := func(c *exec.Cmd) (string, []int) {
		t.Helper()
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", c.Args, err, errs.String())
		}
		return who(out.String())
	}
	if got, _ := run(toolCommand(t, nil, "-x", program, "trace", "touch who", "--", program, lib)); got != "123" {
		t.Errorf("a command: %s", got)
	}
	if got, _ := run(toolCommand(t, nil, "-x", lib, "trace", "late who", "--", program, lib)); got != "4" {
		t.Errorf("a library: %s", got)
	}
	got, pids := run(toolCommand(t, []string{"unshare", "--pid", "--fork", "--mount-proc"}, "-x", program, "trace", "touch who", "--", program, lib))
	if got != "123" {
		t.Errorf("in a PID namespace: %s", got)
	}
	for _, p := range pids {
		if p > 100 {
			t.Errorf("in a PID namespace: process %d", p)
		}
	}
	if got, _ := run(toolCommand(t, nil, "-x", program, "trace", "--all", "--max-hits", "20", "touch who")); len(got) != 20 {
		t.Errorf("all: %s", got)
	}

	// A process that has the program in a file system of its own.
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("mount -t tmpfs none %[1]s && cp %[2]s %[1]s/own && exec %[1]s/own %[3]s wait", inner, program, lib)
	c := exec.Command("sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	tool := toolCommand(t, nil, "-x", inner+"/own", "trace", "--pid", strconv.Itoa(c.Process.Pid), "touch who")
	var hits bytes.Buffer
	tool.Stdout = &hits
	said, err := tool.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 256)
	n, err := said.Read(line) // attached
	if err != nil || !strings.Contains(string(line[:n]), "attached at 1 of 1 site") {
		t.Fatalf("%v: %s", err, line[:n])
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(said)
	if err := tool.Wait(); err != nil { // it ends with the process
		t.Fatalf("%v: %s", err, rest)
	}
	if got, _ := who(hits.String()); got != "1" {
		t.Errorf("a process: %s", got)
	}
}
