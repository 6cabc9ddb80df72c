package bpfexec

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// ErrStuck is returned if loading a program does not return.
var ErrStuck = errors.New("the kernel no longer loads BPF programs: a trivial one has not come back; only a reboot helps")

// childName is the name that the child process of alive has.
const childName = "bpfexec-alive"

// childTime is how long the child may take. It needs milliseconds on a machine
// that is not busy.
const childTime = 20 * time.Second

// A process that is stuck in the kernel cannot be killed, and waiting for it never ends.
// So a child process, which runs this same executable, tries first.
func init() {
	if len(os.Args) == 1 && os.Args[0] == childName {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type:         ebpf.SocketFilter,
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		})
		if err == nil {
			_ = prog.Close()
		}
		os.Exit(0) // a refusal is an answer too, and this process will get it again
	}
}

// alive returns ErrStuck if a child process that loads a program does not end.
func alive() error { return answers(childName, childTime) }

func answers(child string, limit time.Duration) error {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{child}}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("a child process that loads a BPF program: %w", err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(limit):
		_ = cmd.Process.Kill() // which may have no effect; nobody waits
		return fmt.Errorf("%w (waited %v)", ErrStuck, limit)
	}
}
