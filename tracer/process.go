package tracer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// process identifies a process to a program in the kernel: by its ID in its own PID namespace.
// bpf_get_current_pid_tgid returns the ID in the initial namespace, which cannot be found out
// in a container.
type process struct {
	tgid     uint32
	dev, ino uint64 // of the namespace; 0 if the kernel has none
}

// findProcess finds a process by its ID in the PID namespace of this process.
func findProcess(pid int) (*process, error) {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(status)) {
		// One ID for each namespace that it is in, the innermost last (proc_pid_status(5)).
		numbers, ok := strings.CutPrefix(line, "NStgid:")
		if !ok {
			continue
		}
		all := strings.Fields(numbers)
		if len(all) == 0 {
			break
		}
		tgid, err := strconv.ParseUint(all[len(all)-1], 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%s/status: %w", dir, err)
		}
		p := &process{tgid: uint32(tgid)}
		return p, p.findNamespace(dir)
	}
	return nil, fmt.Errorf("%s/status: no NStgid", dir)
}

// thisProcess finds this process.
func thisProcess() (*process, error) {
	p := &process{tgid: uint32(os.Getpid())}
	return p, p.findNamespace("/proc/self")
}

func (p *process) findNamespace(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir+"/ns/pid", &st); errors.Is(err, unix.ENOENT) {
		return nil // a kernel without PID namespaces
	} else if err != nil {
		return fmt.Errorf("%s/ns/pid: %w", dir, err)
	}
	// The kernel compares with its own form of a device number.
	p.dev, p.ino = uint64(unix.Major(st.Dev))<<20|uint64(unix.Minor(st.Dev)), st.Ino
	return nil
}

// load sets R0 to the ID of the current process in p's namespace, or to 0 if it is in another
// one. It uses 8 bytes of stack below the first stack bytes.
func (p *process) load(stack int) asm.Instructions {
	if p.ino == 0 {
		return asm.Instructions{asm.FnGetCurrentPidTgid.Call(), asm.RSh.Imm(asm.R0, 32)}
	}
	at := int16(-stack - 8) // of struct bpf_pidns_info: pid, tgid; 0 after an error
	return asm.Instructions{
		asm.LoadImm(asm.R1, int64(p.dev), asm.DWord),
		asm.LoadImm(asm.R2, int64(p.ino), asm.DWord),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, int32(at)),
		asm.Mov.Imm(asm.R4, 8),
		asm.FnGetNsCurrentPidTgid.Call(),
		asm.LoadMem(asm.R0, asm.RFP, at+4, asm.Word),
	}
}
