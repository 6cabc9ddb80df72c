package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// allocate makes so many system calls that each allocate memory once, and prints how long the fastest
// round of them took. One of guest.LargeEvery allocates much. Before, it lets the kernel make jumps of the probes that can
// be jumps.
func allocate(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := os.WriteFile(optimization, []byte("1"), 0); err != nil {
		return err
	}
	if err := settled(); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	// The kernel copies a control message before it finds that it is none.
	data := make([]byte, guest.LargeSize)
	message := unix.Msghdr{Control: &data[0]}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&data[0])
	best := time.Duration(math.MaxInt64)
	start := time.Now()
	for i := range n {
		message.SetControllen(guest.SmallSize)
		if i%guest.LargeEvery == 0 {
			message.SetControllen(guest.LargeSize)
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), 0)
		if i%guest.Round == guest.Round-1 {
			best = min(best, time.Since(start))
			start = time.Now()
		}
	}
	fmt.Fprintf(os.Stderr, guest.Allocated, n, best.Nanoseconds())
	// Without jumps, probes end faster.
	return os.WriteFile(optimization, []byte("0"), 0)
}

// settled waits until the kernel has made the jumps.
func settled() error {
	var before []byte
	for {
		now, err := os.ReadFile("/sys/kernel/debug/kprobes/list")
		if err != nil {
			return err
		}
		if before != nil && bytes.Equal(now, before) {
			return nil
		}
		before = now
		time.Sleep(10 * settle)
	}
}
