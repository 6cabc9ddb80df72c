// Package mapped knows which files processes have mapped with instructions, also after they have ended: the kernel tells it when
// they map one (perf_event_open(2), PERF_RECORD_MMAP2). What was mapped before is in /proc/PID/maps.
package mapped

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Mapping is a file, or a part of one, that is mapped with instructions.
type Mapping struct {
	Start, End, Offset uint64
	Inode              uint64
	Path               string
}

// Watcher is told of mappings until it is closed.
type Watcher struct {
	rings []*ring
	stop  chan struct{}
	done  sync.WaitGroup

	mu        sync.Mutex
	processes map[int]*process
	ended     []int // in their order
	inodes    map[uint64]bool
	lost      bool
}

type process struct {
	maps  []Mapping
	alive bool
}

// maxEnded is how many processes are remembered that have ended.
const maxEnded = 1 << 12

// lookEvery is how often a ring is emptied, which has room for thousands of mappings.
const lookEvery = 100 * time.Millisecond

// Watch begins to watch all processes. It needs CAP_PERFMON.
func Watch() (*Watcher, error) {
	w := &Watcher{stop: make(chan struct{}), processes: make(map[int]*process), inodes: make(map[uint64]bool)}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, err
	}
	for cpu := range cpus {
		r, err := openRing(cpu)
		if errors.Is(err, unix.ENODEV) {
			continue // it is not online
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch what processes map: %w", err), w.Close())
		}
		w.rings = append(w.rings, r)
	}
	w.done.Go(func() {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-t.C:
				w.mu.Lock()
				w.read()
				w.mu.Unlock()
			}
		}
	})
	return w, nil
}

// Close ends the watching.
func (w *Watcher) Close() error {
	close(w.stop)
	w.done.Wait()
	var errs []error
	for _, r := range w.rings {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// Mappings returns what a process had mapped when it was last seen, by its ID in this process's PID namespace: what it, and its parent
// before it was forked, have mapped since the watching began.
func (w *Watcher) Mappings(pid int) []Mapping {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read()
	if p := w.processes[pid]; p != nil {
		return slices.Clone(p.maps)
	}
	return nil
}

// Inode reports whether a process has mapped a file with an inode since the watching began. It is not known if the kernel had to leave
// something out.
func (w *Watcher) Inode(inode uint64) (is, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read()
	return w.inodes[inode], w.inodes[inode] || !w.lost
}

// read reads what is new in all rings, in the order of time.
func (w *Watcher) read() {
	var all []record
	for _, r := range w.rings {
		all = r.read(all)
	}
	radix.Sort(all, func(r *record) uint64 { return r.time })
	for i := range all {
		w.apply(&all[i])
	}
}

func (w *Watcher) apply(r *record) {
	switch r.kind {
	case unix.PERF_RECORD_MMAP2:
		p := w.of(r.pid)
		m := r.mapping
		w.inodes[m.Inode] = true
		p.maps = slices.DeleteFunc(p.maps, func(old Mapping) bool { return old.Start < m.End && m.Start < old.End })
		at, _ := slices.BinarySearchFunc(p.maps, m, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
		p.maps = slices.Insert(p.maps, at, m)
	case unix.PERF_RECORD_LOST:
		w.lost = true
	case unix.PERF_RECORD_COMM: // it has executed another program
		w.of(r.pid).maps = nil
	case unix.PERF_RECORD_FORK:
		if parent := w.processes[r.parent]; r.pid != r.parent && parent != nil {
			w.of(r.pid).maps = slices.Clone(parent.maps)
		}
	case unix.PERF_RECORD_EXIT:
		p := w.processes[r.pid]
		if p == nil || !p.alive {
			return
		}
		p.alive = false
		if w.ended = append(w.ended, r.pid); len(w.ended) > maxEnded {
			if old := w.processes[w.ended[0]]; old != nil && !old.alive {
				delete(w.processes, w.ended[0])
			}
			w.ended = w.ended[1:]
		}
	}
}

// of returns a process, which is alive.
func (w *Watcher) of(pid int) *process {
	p := w.processes[pid]
	if p == nil || !p.alive {
		p = &process{alive: true} // or another one had its number
		w.processes[pid] = p
	}
	return p
}

// ring is the ring buffer of one processor.
type ring struct {
	fd   int
	mem  []byte
	meta *unix.PerfEventMmapPage
}

// ringBytes is the size of a ring: a power of two, and less than what kernels let a user lock (perf_event_mlock_kb).
const ringBytes = 256 << 10

func openRing(cpu int) (*ring, error) {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY, Sample_type: unix.PERF_SAMPLE_TIME,
		Bits: unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask | unix.PerfBitSampleIDAll,
	}
	attr.Size = uint32(unsafe.Sizeof(*attr))
	fd, err := unix.PerfEventOpen(attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, unix.Getpagesize()+ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &ring{fd: fd, mem: mem, meta: (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))}, nil
}

func (r *ring) close() error { return errors.Join(unix.Munmap(r.mem), unix.Close(r.fd)) }

// read appends the records that are new.
func (r *ring) read(to []record) []record {
	data := r.mem[unix.Getpagesize():]
	head := atomic.LoadUint64(&r.meta.Data_head)
	tail := r.meta.Data_tail
	for tail < head {
		b := part(data, tail, headSize)
		size := uint64(binary.NativeEndian.Uint16(b[6:]))
		if size < headSize || size > head-tail {
			tail = head // nothing that a kernel writes
			break
		}
		if rec, ok := parse(part(data, tail, size)); ok {
			to = append(to, rec)
		}
		tail += size
	}
	atomic.StoreUint64(&r.meta.Data_tail, tail)
	runtime.KeepAlive(r)
	return to
}

// part returns some bytes of a ring.
func part(data []byte, at, size uint64) []byte {
	at %= uint64(len(data))
	if at+size <= uint64(len(data)) {
		return data[at : at+size]
	}
	return slices.Concat(data[at:], data[:at+size-uint64(len(data))])
}

// record is what a record says.
type record struct {
	kind        uint32
	time        uint64
	pid, parent int
	mapping     Mapping
}

// The layout of records (include/uapi/linux/perf_event.h): a head, then IDs; PERF_RECORD_MMAP2 has what is mapped after those. The last
// word of each is the time.
const (
	headSize = 8
	atIDs    = headSize
	atAddr   = 16
	atLen    = 24
	atOffset = 32
	atInode  = 48
	atName   = 72
	timeSize = 8

	miscExec = 1 << 13 // PERF_RECORD_MISC_COMM_EXEC
)

// parse parses a record. ok is false for those that say nothing of mappings.
func parse(b []byte) (r record, ok bool) {
	ne := binary.NativeEndian
	if len(b) < atIDs+8+timeSize {
		return r, false
	}
	r.kind, r.time = ne.Uint32(b), ne.Uint64(b[len(b)-timeSize:])
	r.pid, r.parent = int(ne.Uint32(b[atIDs:])), int(ne.Uint32(b[atIDs+4:]))
	switch r.kind {
	case unix.PERF_RECORD_FORK, unix.PERF_RECORD_LOST:
		return r, true
	case unix.PERF_RECORD_EXIT:
		// Of a process its first thread, which may end before others: they still have what is known.
		return r, len(b) >= atIDs+12+timeSize && ne.Uint32(b[atIDs+8:]) == uint32(r.pid)
	case unix.PERF_RECORD_COMM:
		return r, ne.Uint16(b[4:])&miscExec != 0
	case unix.PERF_RECORD_MMAP2:
		if len(b) < atName+timeSize {
			return r, false
		}
		m := &r.mapping
		m.Start, m.Offset, m.Inode = ne.Uint64(b[atAddr:]), ne.Uint64(b[atOffset:]), ne.Uint64(b[atInode:])
		m.End = m.Start + ne.Uint64(b[atLen:])
		m.Path, _, _ = strings.Cut(string(b[atName:len(b)-timeSize]), "\x00")
		return r, m.End > m.Start
	}
	return r, false
}
