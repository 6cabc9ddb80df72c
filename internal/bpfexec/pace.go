package bpfexec

import (
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// closedPerPause is how many programs are closed between two pauses.
const closedPerPause = 128

var pace struct {
	sync.Mutex
	closed uint64
}

// Close closes a program, or something that holds one. All code here that loads many
// programs must use it: now and then it waits until the kernel has freed earlier ones.
//
// A closed program is freed later: after an RCU grace period, by a work item on
// the kernel's shared queue, which takes pack_mutex (bpf_jit_free,
// bpf_prog_pack_free in kernel/bpf/core.c). Closing tens of thousands quickly was
// seen to lock up Linux 6.18 for good: the queue runs only so many items at once,
// all of them waited for pack_mutex, and its owner, in set_memory_rox, waited in
// __purge_vmap_area_lazy for an item after them in the same queue. From then on
// no program could be loaded any more. With a pause for each 128 programs there
// are never enough items to fill the queue.
func Close(c io.Closer) error {
	// While one goroutine pauses, no other closes programs.
	pace.Lock()
	defer pace.Unlock()
	err := c.Close()
	if pace.closed++; pace.closed%closedPerPause == 0 {
		pause()
	}
	return err
}

// pause waits for an RCU grace period, as membarrier's global command does
// (synchronize_rcu in kernel/sched/membarrier.c). Kernels without it, or with nohz_full
// processors, refuse; there it sleeps for about as long as a grace period takes.
func pause() {
	const global = 1 << 0 // MEMBARRIER_CMD_GLOBAL of include/uapi/linux/membarrier.h
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); errno != 0 {
		time.Sleep(50 * time.Millisecond)
	}
}
