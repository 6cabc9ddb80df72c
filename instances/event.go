package instances

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// A probe is a perf event of the kprobe or uprobe PMU (Linux 4.17) with a program attached to
// it. Package link of cilium/ebpf makes such events too, but takes symbols instead of kernel
// addresses, and returns the same error for several causes of a refusal.

// probeLink is an attached probe. It ends when it is closed, or with the process that holds
// it.
type probeLink struct{ fd int }

func (l *probeLink) Close() error { return unix.Close(l.fd) }

const pmuDir = "/sys/bus/event_source/devices"

// pmu has the numbers that perf events of a PMU are made with.
type pmu struct {
	kind   uint32 // its number
	retBit uint64 // of config, makes a return probe
}

func findPMU(name string) (*pmu, error) {
	text, err := os.ReadFile(filepath.Join(pmuDir, name, "type"))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: it has no %s events (CONFIG_%s_EVENTS, Linux 4.17)", ErrNotSupported, name, strings.ToUpper(name))
		}
		return nil, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s/%s/type: %w", pmuDir, name, err)
	}
	format, err := os.ReadFile(filepath.Join(pmuDir, name, "format/retprobe"))
	if err != nil {
		return nil, err
	}
	bit, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(string(format)), "config:"))
	if err != nil || bit < 0 || bit > 63 {
		return nil, fmt.Errorf("%s/%s/format/retprobe: %q is no bit of config", pmuDir, name, format)
	}
	return &pmu{uint32(n), 1 << bit}, nil
}

// single makes one probe.
func (w *attacher) single(points []point, prog *ebpf.Program) (io.Closer, error) {
	if w.pmu == nil {
		var err error
		if w.pmu, err = findPMU(w.r.pmu); err != nil {
			return nil, err
		}
	}
	attr := unix.PerfEventAttr{Type: w.pmu.kind, Ext2: points[0].addr}
	attr.Size = uint32(unsafe.Sizeof(attr))
	if points[0].isReturn {
		attr.Config |= w.pmu.retBit
	}
	const counterShift = 32 // format/ref_ctr_offset of the PMU (PERF_UPROBE_REF_CTR_OFFSET_SHIFT in kernel/events/core.c)
	attr.Config |= points[0].counter << counterShift
	pid, cpu := -1, 0
	var path *byte
	var err error
	if w.path != "" {
		if path, err = unix.BytePtrFromString(w.path); err != nil {
			return nil, err
		}
		attr.Ext1 = uint64(uintptr(unsafe.Pointer(path)))
		if w.o.PID > 0 {
			pid, cpu = w.o.PID, -1
		}
	}
	event, err := unix.PerfEventOpen(&attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(path)
	if err != nil {
		return nil, err
	}
	link, err := attachEvent(prog, event, points[0].cookie)
	if err != nil {
		return nil, errors.Join(err, unix.Close(event))
	}
	if link < 0 {
		return &probeLink{event}, nil
	}
	// The link keeps the event.
	return &probeLink{link}, unix.Close(event)
}

// attachEvent attaches a program by a BPF link with a cookie. Kernels before 5.15 have neither
// such links nor cookies: there it uses an ioctl, and link is -1.
func attachEvent(prog *ebpf.Program, event int, cookie uint64) (link int, err error) {
	attr := struct {
		prog, target, attachType, flags uint32
		cookie                          uint64
		_                               [8]byte
	}{uint32(prog.FD()), uint32(event), unix.BPF_PERF_EVENT, 0, cookie, [8]byte{}}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(prog)
	if errno == 0 {
		return int(fd), nil
	}
	if errno != unix.EINVAL || haveCookies() {
		return -1, fmt.Errorf("attach the program: %w", errno)
	}
	if err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_SET_BPF, prog.FD()); err != nil {
		return -1, fmt.Errorf("attach the program: %w", err)
	}
	if err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return -1, fmt.Errorf("enable the probe: %w", err)
	}
	return -1, nil
}

// haveCookies reports whether the kernel has attach cookies, or it is not known.
func haveCookies() bool {
	return !errors.Is(features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie), ebpf.ErrNotSupported)
}
