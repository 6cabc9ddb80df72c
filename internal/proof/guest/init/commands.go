package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// commands runs the task's commands and reports what they print.
func commands(task *guest.Task, r *reporter) error {
	if task.Module != "" {
		f, err := os.Open(task.Module)
		if err != nil {
			return err
		}
		if err := errors.Join(unix.FinitModule(int(f.Fd()), "", 0), f.Close()); err != nil {
			return fmt.Errorf("load %s: %w", task.Module, err)
		}
	}
	for _, c := range task.Commands {
		cmd := exec.Command(c[0], c[1:]...)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		failed := ""
		if err := cmd.Run(); err != nil {
			failed = err.Error()
		}
		if err := r.line(guest.Line{Output: &guest.Output{Out: out.String(), Err: stderr.String(), Failed: failed}}); err != nil {
			return err
		}
	}
	return nil
}

// workFolder is a folder in the guest's memory.
const workFolder = "/tmp/load"

// makeWork does for some time what programs usually do: files, pipes, sockets, memory.
func makeWork(text string) {
	runtime.LockOSThread()
	d, err := time.ParseDuration(text)
	if err == nil {
		err = os.MkdirAll(workFolder, 0o700)
	}
	for end := time.Now().Add(d); err == nil && time.Now().Before(end); {
		err = workOnce()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func workOnce() error {
	const name = workFolder + "/file"
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		return err
	}
	if _, err := os.ReadDir(workFolder); err != nil {
		return err
	}
	if _, err := os.ReadFile("/proc/self/status"); err != nil {
		return err
	}
	if err := os.Remove(name); err != nil {
		return err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], 0); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for _, fd := range []int{pipe[1], pair[1]} {
		if _, err := unix.Write(fd, []byte("a word")); err != nil {
			return err
		}
	}
	for _, fd := range []int{pipe[0], pipe[1], pair[0], pair[1]} {
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return exec.Command("/init", guest.Workload, "0s").Run()
}
