// Package kernelerr explains errors of loading and attaching programs.
package kernelerr

import (
	"errors"
	"fmt"

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
		return fmt.Errorf("%w: probes need root, or CAP_PERFMON and CAP_BPF", err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: each probe needs a file descriptor: raise the limit (ulimit -n)", err)
	}
	return err
}
