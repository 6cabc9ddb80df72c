package bpfexec

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TB is the part of testing.TB that RequireOrSkip uses.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// RequireOrSkip skips a test if prologues cannot run here, and logs the reason. With CI=true
// in the environment the test fails instead: a job that means to run them must not pass
// without. If the kernel hangs, the test always fails.
func RequireOrSkip(t TB) {
	t.Helper()
	err := Available()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true", errors.Is(err, ErrStuck):
		t.Fatalf("%v", err)
	default:
		t.Skipf("%v", err)
	}
}

// Available tries to run a prologue, and returns an error if it cannot. If the kernel hangs,
// it returns ErrStuck.
var Available = sync.OnceValue(func() error {
	if err := alive(); err != nil {
		return err
	}
	p, err := Load(Code{Insns: asm.Instructions{asm.Mov.Imm(asm.R2, 0)}})
	var rejected *Rejected
	switch {
	case err == nil:
	case errors.Is(err, ErrPrivilege), errors.As(err, &rejected):
		return err
	default:
		return fmt.Errorf("%w: %w", ErrKernel, err)
	}
	defer p.Close()
	_, err = p.Run(State{})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w: %w", ErrKernel, err)
	}
	return err
})
