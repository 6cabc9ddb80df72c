// Package kernelerr adds to errors of loading and attaching programs what they mean.
package kernelerr

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Explain adds to the kernel's refusal what is missing: a privilege or file descriptors.
// Other errors, nil among them, are returned as they are.
func Explain(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier): // the verifier's refusal of a program is EACCES too
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: probes need root, or CAP_PERFMON and CAP_BPF", err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: each probe needs a file descriptor: raise the limit (ulimit -n)", err)
	}
	return err
}
