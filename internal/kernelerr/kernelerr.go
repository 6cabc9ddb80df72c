// Package kernelerr explains errors of loading and attaching programs.
package kernelerr

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Explain adds to an error of the kernel what is missing: a privilege or file descriptors.
// Other errors, including nil, are returned unchanged.
func Explain(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier): // EACCES too, if the verifier rejects a program
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: probes need root, or CAP_PERFMON and CAP_BPF: %s", WithoutHint(err), Missing())
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: each probe needs a file descriptor: raise the limit (ulimit -n)", err)
	}
	return err
}

// most is the largest value of kernel.perf_event_paranoid that Linux gives a meaning to (Documentation/admin-guide/sysctl/kernel.rst). Kernels
// of Debian have 3, which forbids perf_event_open to all without CAP_SYS_ADMIN: seen with 7.2 in a guest.
const most = 2

// Missing says which of the two capabilities this process does not have, or what else there is that
// forbids it to load and attach programs.
func Missing() string {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return "which of them this process has is not known: " + err.Error()
	}
	has := func(c int) bool {
		// CAP_SYS_ADMIN stands for both (bpf_capable and perfmon_capable in include/linux/capability.h).
		return data[c/32].Effective&(1<<(c%32)) != 0 || data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
	}
	switch bpf, perfmon := has(unix.CAP_BPF), has(unix.CAP_PERFMON); {
	case !bpf && !perfmon:
		return "this process has neither"
	case !bpf:
		return "this process lacks CAP_BPF, for maps and programs"
	case !perfmon:
		return "this process lacks CAP_PERFMON, for programs that trace and for their probes"
	}
	if d, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		if text := paranoid(string(d)); text != "" {
			return text
		}
	}
	return "this process has them, so something else forbids it: a user namespace, a seccomp filter, a security module, or lockdown of the kernel"
}

// paranoid says what a setting of kernel.perf_event_paranoid forbids to a process without CAP_SYS_ADMIN, or "".
func paranoid(setting string) string {
	n, err := strconv.Atoi(strings.TrimSpace(setting))
	if err != nil || n <= most {
		return ""
	}
	return fmt.Sprintf("this process has them, but kernel.perf_event_paranoid is %d, with which some distributions' kernels ask for CAP_SYS_ADMIN: with %d they do not", n, most)
}

// memlockHint is what cilium/ebpf adds to each EPERM. Since Linux 5.11 the limit does not count, and
// nothing here runs on kernels before 5.14.
const memlockHint = " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)"

// WithoutHint returns an error of cilium/ebpf without its guess.
func WithoutHint(err error) error {
	if text := err.Error(); strings.Contains(text, memlockHint) {
		return &reworded{err, strings.ReplaceAll(text, memlockHint, "")}
	}
	return err
}

type reworded struct {
	error
	text string
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.error }
