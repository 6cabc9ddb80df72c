package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// paranoid is where a kernel is told who may use perf_event_open.
const paranoid = "/proc/sys/kernel/perf_event_paranoid"

// limited runs a command that has some capabilities and can get no others, as in a container. Before, it sets kernel.perf_event_paranoid to
// what Linux has by default: Debian's kernels have 3, with which only CAP_SYS_ADMIN helps.
func limited(names string, command []string) error {
	var keep []uintptr
	for _, n := range strings.Split(names, ",") {
		c, known := map[string]uintptr{"BPF": unix.CAP_BPF, "PERFMON": unix.CAP_PERFMON, "SYSLOG": unix.CAP_SYSLOG}[n]
		if !known {
			return fmt.Errorf("capability %q is not known", n)
		}
		keep = append(keep, c)
	}
	was, err := os.ReadFile(paranoid)
	if err == nil {
		fmt.Fprintf(os.Stderr, "kernel.perf_event_paranoid was %s", was)
		err = os.WriteFile(paranoid, []byte("2"), 0)
	}
	if err != nil {
		return err
	}
	runtime.LockOSThread() // what is dropped is dropped by a thread, which becomes the command
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if slices.Contains(keep, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(command[0], command, unix.Environ())
}
