package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// numbers are the numbers of system calls that all architectures have.
var numbers = map[string]uintptr{
	"bind": unix.SYS_BIND, "close": unix.SYS_CLOSE, "epoll_create1": unix.SYS_EPOLL_CREATE1, "epoll_ctl": unix.SYS_EPOLL_CTL, "getpgid": unix.SYS_GETPGID, "ioctl": unix.SYS_IOCTL, "dup": unix.SYS_DUP, "dup3": unix.SYS_DUP3, "eventfd2": unix.SYS_EVENTFD2,
	"fallocate": unix.SYS_FALLOCATE, "fchmod": unix.SYS_FCHMOD, "fchown": unix.SYS_FCHOWN,
	"fcntl": unix.SYS_FCNTL, "ftruncate": unix.SYS_FTRUNCATE, "futex": unix.SYS_FUTEX, "getpriority": unix.SYS_GETPRIORITY, "kill": unix.SYS_KILL,
	"linkat": unix.SYS_LINKAT, "listen": unix.SYS_LISTEN, "lseek": unix.SYS_LSEEK, "memfd_create": unix.SYS_MEMFD_CREATE,
	"mkdirat": unix.SYS_MKDIRAT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "openat": unix.SYS_OPENAT,
	"ppoll": unix.SYS_PPOLL, "prctl": unix.SYS_PRCTL, "pread64": unix.SYS_PREAD64, "preadv": unix.SYS_PREADV, "prlimit64": unix.SYS_PRLIMIT64,
	"pwrite64": unix.SYS_PWRITE64, "pwritev": unix.SYS_PWRITEV, "read": unix.SYS_READ, "readlinkat": unix.SYS_READLINKAT,
	"sendfile": unix.SYS_SENDFILE, "sendmsg": unix.SYS_SENDMSG, "sendto": unix.SYS_SENDTO, "setpriority": unix.SYS_SETPRIORITY, "setsockopt": unix.SYS_SETSOCKOPT,
	"shutdown": unix.SYS_SHUTDOWN, "socket": unix.SYS_SOCKET, "symlinkat": unix.SYS_SYMLINKAT,
	"unlinkat": unix.SYS_UNLINKAT, "write": unix.SYS_WRITE,
}

// makeCalls makes the task's calls on one thread, with a marker before each, and prints what
// they returned. Nothing else may enter the kernel between them, so everything they need is
// prepared before.
func makeCalls() {
	runtime.LockOSThread()
	task, err := readTask()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	type call struct {
		number uintptr
		args   [6]uintptr
		from   [6]int // the call whose result an argument is
	}
	calls := make([]call, len(task.Calls))
	var pin runtime.Pinner
	defer pin.Unpin()
	address := func(b []byte) uintptr {
		pin.Pin(&b[0])
		return uintptr(unsafe.Pointer(&b[0]))
	}
	for i, c := range task.Calls {
		n, ok := numbers[c.Name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no system call %s\n", c.Name)
			os.Exit(1)
		}
		calls[i].number = n
		for j, a := range c.Args {
			switch {
			case a.Result > 0:
				calls[i].from[j] = a.Result
			case a.Memory != nil:
				for at, to := range a.Pointers {
					binary.NativeEndian.PutUint64(a.Memory[at:], uint64(address(to))) // no test has pointers of 4 bytes
				}
				calls[i].args[j] = address(a.Memory)
			default:
				calls[i].args[j] = uintptr(a.Number)
			}
		}
	}
	out := guest.Child{Task: unix.Gettid(), Results: make([]int64, len(calls))}
	for i := range calls {
		c := &calls[i]
		for j, from := range c.from {
			if from > 0 {
				c.args[j] = uintptr(out.Results[from-1])
			}
		}
		_, _, _ = unix.RawSyscall(unix.SYS_GETPGID, uintptr(guest.FirstMark+i), 0, 0)
		r, _, errno := unix.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if out.Results[i] = int64(r); errno != 0 {
			out.Results[i] = -int64(errno)
		}
	}
	_, _, _ = unix.RawSyscall(unix.SYS_GETPGID, uintptr(guest.FirstMark+len(calls)), 0, 0)
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
