package mapped

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// TestEnded: what a process had mapped is known after it has ended, that of a child of a shell too.
func TestEnded(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	w, err := Watch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := exec.Command("sh", "-c", `sleep 0 & echo $!; wait`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	child := 0
	for _, c := range strings.TrimSpace(string(out)) {
		child = 10*child + int(c-'0')
	}
	for _, tt := range []struct {
		pid  int
		name string
	}{{cmd.Process.Pid, "sh"}, {child, "sleep"}} {
		path, err := exec.LookPath(tt.name)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		maps := w.Mappings(tt.pid)
		if !slices.ContainsFunc(maps, func(m Mapping) bool { return m.Inode == st.Ino && filepath.Base(m.Path) == filepath.Base(path) }) {
			t.Errorf("process %d, %s: %+v", tt.pid, tt.name, maps)
		}
		if is, known := w.Inode(st.Ino); !is || !known {
			t.Errorf("%s is not known", tt.name)
		}
		if !slices.IsSortedFunc(maps, func(a, b Mapping) int { return int(int64(a.Start) - int64(b.Start)) }) {
			t.Errorf("process %d: not in order: %+v", tt.pid, maps)
		}
	}
	if maps := w.Mappings(os.Getpid()); maps != nil {
		t.Logf("this process: %+v", maps)
	}
}

// made makes a record with a time as its last word.
func made(kind uint32, misc uint16, words ...uint64) []byte {
	b := make([]byte, headSize)
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	binary.NativeEndian.PutUint32(b, kind)
	binary.NativeEndian.PutUint16(b[4:], misc)
	binary.NativeEndian.PutUint16(b[6:], uint16(len(b)))
	return b
}

// ids are two numbers of 32 bits.
func ids(a, b uint64) uint64 {
	var w [8]byte
	binary.NativeEndian.PutUint32(w[:], uint32(a))
	binary.NativeEndian.PutUint32(w[4:], uint32(b))
	return binary.NativeEndian.Uint64(w[:])
}

// TestRecords: mappings take the place of others, are a child's too, and end with another program; a number can be had again.
func TestRecords(t *testing.T) {
	name := binary.NativeEndian.Uint64([]byte("/bin/x\x00\x00"))
	mmap := func(pid, start, size, time uint64) []byte {
		return made(unix.PERF_RECORD_MMAP2, 0, ids(pid, pid), start, size, 0x1000, 0, 7, 0, 0, name, time)
	}
	w := &Watcher{processes: make(map[int]*process), inodes: make(map[uint64]bool)}
	starts := func(pid int) (out []uint64) {
		for _, m := range w.Mappings(pid) {
			if m.Inode != 7 || m.Path != "/bin/x" || m.Offset != 0x1000 {
				t.Errorf("process %d: %+v", pid, m)
			}
			out = append(out, m.Start)
		}
		return out
	}
	if is, known := w.Inode(7); is || !known {
		t.Error("inode 7 before it is mapped")
	}
	defer func() {
		if is, known := w.Inode(7); !is || !known {
			t.Error("inode 7 is not known")
		}
		r, ok := parse(made(unix.PERF_RECORD_LOST, 0, 1, 2, 9))
		if w.apply(&r); !ok {
			t.Error("what is lost is not read")
		}
		if is, known := w.Inode(8); is || known {
			t.Error("inode 8 is known after something was lost")
		}
	}()
	for _, step := range []struct {
		b    []byte
		pid  int
		want []uint64
	}{
		{mmap(1, 0x3000, 0x1000, 1), 1, []uint64{0x3000}},
		{mmap(1, 0x1000, 0x1000, 2), 1, []uint64{0x1000, 0x3000}},
		{mmap(1, 0x1800, 0x2000, 3), 1, []uint64{0x1800}},
		{made(unix.PERF_RECORD_FORK, 0, ids(2, 1), ids(2, 1), 4, 4), 2, []uint64{0x1800}},
		{made(unix.PERF_RECORD_FORK, 0, ids(1, 1), ids(5, 1), 4, 4), 1, []uint64{0x1800}}, // a thread
		{made(unix.PERF_RECORD_COMM, 0, ids(2, 2), name, 5), 2, []uint64{0x1800}},         // only its name
		{made(unix.PERF_RECORD_COMM, miscExec, ids(2, 2), name, 6), 2, nil},
		{made(unix.PERF_RECORD_EXIT, 0, ids(1, 0), ids(9, 9), 7, 7), 1, []uint64{0x1800}}, // a thread
		{made(unix.PERF_RECORD_EXIT, 0, ids(1, 0), ids(1, 0), 7, 7), 1, []uint64{0x1800}},
		{mmap(1, 0x9000, 0x1000, 8), 1, []uint64{0x9000}},
	} {
		r, ok := parse(step.b)
		if ok {
			w.apply(&r)
		}
		if got := starts(step.pid); !slices.Equal(got, step.want) {
			t.Errorf("after %+v: %#x, want %#x", r, got, step.want)
		}
	}
}

// FuzzParse: no record makes a panic.
func FuzzParse(f *testing.F) {
	f.Add(made(unix.PERF_RECORD_MMAP2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := parse(b); ok && r.kind == unix.PERF_RECORD_MMAP2 && r.mapping.End <= r.mapping.Start {
			t.Errorf("%+v", r)
		}
	})
}

// TestRing: records that go on at the ring's beginning are whole.
func TestRing(t *testing.T) {
	page := unix.Getpagesize()
	r := &ring{mem: make([]byte, page+64), meta: new(unix.PerfEventMmapPage)}
	b := made(unix.PERF_RECORD_FORK, 0, ids(2, 1), ids(2, 1), 4, 9)
	r.meta.Data_tail, r.meta.Data_head = 48, 48+uint64(len(b))
	for i, c := range b {
		r.mem[page+(48+i)%64] = c
	}
	if got := r.read(nil); len(got) != 1 || got[0].time != 9 || got[0].pid != 2 || r.meta.Data_tail != r.meta.Data_head {
		t.Errorf("%+v, tail %d", got, r.meta.Data_tail)
	}
}
