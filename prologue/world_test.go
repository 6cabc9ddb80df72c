package prologue_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// world is the state of a machine at a site: what the reference below, the
// interpreter and the kernel all start from.
type world struct {
	be       bool
	regs     [17]uint64 // by DWARF number of amd64
	base     uint64     // address of mem
	mem      []byte
	unmapped uint64         // an address in an unmapped page
	comm     string         // of the current task
	reads    prologue.Reads // that read mem in the kernel
	// helper, if not nil, is called for each helper that the interpreter calls; ok is false
	// if that faulted.
	helper func(f asm.BuiltinFunc, ok bool)

	task     map[asm.BuiltinFunc]uint64 // what helpers without arguments return
	missing  uint64                     // the value of references.MissingCounter
	excluded uint64                     // and the second one
	doubts   bool                       // programs learn which arguments are doubtful
}

// Task returns a number of the current task.
func (w *world) Task(t ops.TaskNumber) uint64 {
	pid, uid := w.task[asm.FnGetCurrentPidTgid], w.task[asm.FnGetCurrentUidGid]
	var comm [16]byte
	copy(comm[:], w.comm)
	return map[ops.TaskNumber]uint64{
		ops.TaskPID: pid >> 32, ops.TaskTID: pid & 0xffffffff, ops.TaskUID: uid & 0xffffffff, ops.TaskGID: uid >> 32,
		ops.TaskCPU: w.task[asm.FnGetSmpProcessorId], ops.TaskCgroup: w.task[asm.FnGetCurrentCgroupId], ops.TaskTime: w.task[asm.FnKtimeGetNs],
		ops.TaskComm: w.order().Uint64(comm[:]), ops.TaskComm + 1: w.order().Uint64(comm[8:]),
	}[t]
}

// Comm returns the name of the current task.
func (w *world) Comm() string { return w.comm }

// BigEndian returns the byte order.
func (w *world) BigEndian() bool { return w.be }

// Where the interesting things of a world are.
const (
	ptrOff = 512  // offsets in mem of pointers into mem
	spOff  = 2048 // where %rsp points
)

func (w *world) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if w.be {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// newWorld fills memory with bytes that are all different from their neighbours,
// some with the high bit set, and puts pointers into it.
func newWorld(be bool, base uint64, mem []byte, unmapped uint64) *world {
	w := &world{be: be, base: base, mem: mem, unmapped: unmapped, comm: "imaginary"}
	for i := range mem {
		mem[i] = byte(i*37 + i>>8 + 11)
	}
	for i := range 7 {
		w.order().PutUint64(mem[ptrOff+8*i:], base+uint64(1024+100*i))
	}
	clear(mem[ptrOff+56:][:8])   // a pointer that is null
	clear(mem[spOff-64:][:20])   // zeros in the stack
	clear(mem[1024+300+2:][:40]) // and behind a pointer
	for i := range w.regs {
		w.regs[i] = 0x8070605040302010 + uint64(i)*0x0f1e2d3c4b5a6978
	}
	w.regs[7] = base + spOff
	w.regs[5] = base
	w.regs[4] = unmapped
	return w
}

// imaginary is a world for the interpreter alone.
func imaginary(be bool) *world {
	return newWorld(be, 0x7f0000000000, make([]byte, 4096), 0x7f0000001000)
}

// actual is a world of this process's memory, or with prologue.ReadCast of the kernel's, for
// prologues that run in the kernel.
func actual(t testing.TB, reads prologue.Reads) *world {
	t.Helper()
	arena := bpfexec.NewArena
	if reads == prologue.ReadCast {
		arena = bpfexec.NewKernelArena
	}
	a, err := arena(4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(binary.NativeEndian.Uint16([]byte{0, 1}) == 1, a.Addr(0), a.Bytes, a.Unmapped())
	w.reads = reads
	w.comm = strings.TrimSuffix(string(comm), "\n")
	return w
}

// inKernel runs a test with what the kernel can do: prologues with helpers only, and with all
// that it has.
func inKernel(t *testing.T, test func(t *testing.T, w *world)) {
	bpfexec.RequireOrSkip(t)
	t.Run("helpers", func(t *testing.T) { test(t, actual(t, prologue.ReadUser)) })
	t.Run("loads", func(t *testing.T) {
		if !kernelhas.Casts() {
			t.Skip(kernelhas.ErrNoCast)
		}
		test(t, actual(t, prologue.ReadCast))
	})
}

// options are those of prologues that run in the kernel.
func (w *world) options(c prologue.Convention) prologue.Options {
	return prologue.Options{Arch: amd64, BigEndian: w.be, Reads: w.reads, SignExtends: w.reads == prologue.ReadCast, Convention: c, Doubts: w.doubts}
}

// ptRegs is the struct pt_regs of the world.
func (w *world) ptRegs() []byte {
	b := make([]byte, 168)
	for i, v := range w.regs {
		w.order().PutUint64(b[amd64.Register(uint64(i)).Offset:], v)
	}
	return b
}

// read returns bytes of memory, or false for a fault.
func (w *world) read(addr uint64, n int) ([]byte, bool) {
	off := addr - w.base
	if addr < w.base || off > uint64(len(w.mem)) || uint64(n) > uint64(len(w.mem))-off {
		return nil, false
	}
	return w.mem[off:][:n], true
}

// number makes a number of bytes in the world's order.
func (w *world) number(b []byte) (v uint64) {
	for i := range b {
		if w.be {
			v = v<<8 | uint64(b[i])
		} else {
			v |= uint64(b[i]) << (8 * i)
		}
	}
	return v
}

// bytes is the inverse of number, for n bytes.
func (w *world) bytes(v uint64, n int) []byte {
	b := w.order().AppendUint64(nil, v)
	if w.be {
		return b[8-n:]
	}
	return b[:n]
}

// Register, Address and Load make the world an exprtest.Machine.
func (w *world) Register(n uint64) (uint64, bool) { return w.regs[n], true }
func (w *world) Address(addr uint64) uint64       { return addr }
func (w *world) Load(addr uint64, size int) (uint64, bool) {
	b, ok := w.read(addr, size)
	return w.number(b), ok
}

// eval computes an expression. ok is false for a fault.
func (w *world) eval(e *expr) (v uint64, ok bool) { return exprtest.Value(w, e) }

// object returns an object's first n bits, in the order of its memory: on a
// little-endian machine from the least significant bit of each byte, on a
// big-endian one from the most significant.
func (w *world) object(l *location, off, n int) (bits []bool, ok bool) {
	ofBytes := func(b []byte) {
		for i := off; i < off+n; i++ {
			bit := i % 8
			if w.be {
				bit = 7 - bit
			}
			bits = append(bits, b[i/8]>>bit&1 == 1)
		}
	}
	switch l.Kind {
	case loc.KindMemory:
		a, ok := w.eval(l.Expr)
		if !ok {
			return nil, false
		}
		// Only the bytes that hold the bits are looked at.
		first := off / 8
		b, ok := w.read(a+uint64(first), (off+n+7)/8-first)
		if !ok {
			return nil, false
		}
		ofBytes(append(make([]byte, first), b...))
	case loc.KindBytes:
		ofBytes(l.Bytes)
	case loc.KindPieces:
		for i := range l.Pieces {
			p := &l.Pieces[i]
			size := int(p.BitSize)
			if k := p.Loc.Kind; k == loc.KindMemory || k == loc.KindBytes {
				size = min(size, n-len(bits)) // bytes after the object are not read
			}
			part, ok := w.object(&p.Loc, int(p.BitOffset), size)
			if !ok {
				return nil, false
			}
			bits = append(bits, part...)
			if len(bits) >= n {
				break
			}
		}
		bits = bits[:n]
	default:
		v, ok := w.eval(l.Expr)
		if !ok {
			return nil, false
		}
		for i := range n {
			bit := off + i
			if w.be {
				bit = off + n - 1 - i
			}
			bits = append(bits, v>>bit&1 == 1)
		}
	}
	return bits, true
}

// fetch is the value of an argument by definition. ok is false for a fault.
func (w *world) fetch(arg *prologue.Arg) (v uint64, ok bool) {
	bits, ok := w.object(&arg.Loc, 0, 8*arg.Size)
	if !ok {
		return 0, false
	}
	for i, b := range bits {
		if !b {
			continue
		}
		if w.be {
			v |= 1 << (len(bits) - 1 - i)
		} else {
			v |= 1 << i
		}
	}
	return exprtest.Extend(v, arg.Size, arg.Signed), true
}

// str is what the helpers that read strings return: at most limit bytes, the last of
// them a NUL, or false for a fault before the string ends.
func (w *world) str(addr uint64, limit int) (b []byte, ok bool) {
	for i := range limit {
		c, ok := w.read(addr+uint64(i), 1)
		if !ok {
			return nil, false
		}
		b = append(b, c[0])
		if c[0] == 0 {
			return b, true
		}
	}
	b[limit-1] = 0
	return b, true
}

// place is what stands in an argument's place in a record, without padding.
func (w *world) place(arg *prologue.Arg) (b []byte, ok bool) {
	l := &arg.Loc
	switch {
	case arg.Kind == prologue.KindComm:
		return []byte(w.comm), true
	case l.Kind == loc.KindNone:
		return nil, false
	case arg.Kind == prologue.KindScalar:
		v, ok := w.fetch(arg)
		return w.order().AppendUint64(nil, v), ok
	case arg.Kind == prologue.KindObject && arg.Size > 0 && arg.Size <= prologue.MaxObject:
		bits, ok := w.object(l, 0, 8*arg.Size)
		b := make([]byte, arg.Size)
		for i, set := range bits {
			bit := i % 8
			if w.be {
				bit = 7 - bit
			}
			if set {
				b[i/8] |= 1 << bit
			}
		}
		return b, ok
	case arg.Kind == prologue.KindObject:
		return nil, false
	case arg.Kind == prologue.KindSlice:
		n, ok := w.fetch(&prologue.Arg{Loc: arg.Length, Size: 8})
		addr, known := w.eval(l.Expr)
		if !ok || !known {
			return nil, false
		}
		count := w.order().AppendUint64(nil, n)
		if n == 0 {
			return count, true
		}
		b, ok := w.read(addr, int(min(n, uint64(arg.MaxBytes/arg.Size)))*arg.Size)
		return append(count, b...), ok
	case l.Kind == loc.KindMemory && arg.Length.Kind != loc.KindNone:
		n, ok := w.fetch(&prologue.Arg{Loc: arg.Length, Size: 8})
		addr, known := w.eval(l.Expr)
		if !ok || !known {
			return nil, false
		}
		if n == 0 {
			return nil, true
		}
		return w.read(addr, int(min(n, uint64(arg.MaxBytes-1))))
	case l.Kind == loc.KindMemory:
		addr, ok := w.eval(l.Expr)
		if !ok {
			return nil, false
		}
		limit := arg.MaxBytes
		if arg.Size > 0 {
			limit = min(limit, arg.Size+1) // the array ends there
		}
		return w.str(addr, limit)
	case l.Kind == loc.KindBytes:
		b := l.Bytes
		if arg.Size > 0 {
			b = b[:arg.Size]
		}
		b = b[:min(len(b), arg.MaxBytes-1)]
		if end := bytes.IndexByte(b, 0); end >= 0 {
			b = b[:end]
		}
		return b, true
	}
	return nil, false
}

// wantRecord is what a prologue must deliver in a record. An argument's place is a
// multiple of 8 bytes, 0 where nothing else is.
func (w *world) wantRecord(args []prologue.Arg) (res bpfexec.Result) {
	var record []byte
	for i := range args {
		a := &args[i]
		b, ok := w.place(a)
		size := 8
		switch a.Kind {
		case prologue.KindString, prologue.KindUserString:
			size = a.MaxBytes
		case prologue.KindSlice:
			size = 8 + (a.MaxBytes+7)/8*8
		case prologue.KindObject:
			if size = a.Size; size > prologue.MaxObject {
				size = 0
			}
		case prologue.KindComm:
			size = 16
		}
		place := make([]byte, (size+7)/8*8)
		if ok {
			copy(place, b)
		} else {
			res.Err |= 1 << i
		}
		record = append(record, place...)
	}
	res.Record = string(record)
	return res
}

// want is what a prologue must deliver.
func (w *world) want(args []prologue.Arg) (res bpfexec.Result) {
	for i := range args {
		var ok bool
		if args[i].Loc.Kind != loc.KindNone {
			res.Values[i], ok = w.fetch(&args[i])
		}
		if !ok {
			res.Err |= 1 << i
			res.Values[i] = 0
		}
	}
	return res
}

// wantBy is what a prologue with some options must deliver.
func (w *world) wantBy(o *prologue.Options, args []prologue.Arg) bpfexec.Result {
	res := w.want
	if o.Convention == prologue.ConventionRecord {
		res = w.wantRecord
	}
	return w.noted(o, args, res(args))
}

// noted adds what a program learns of arguments that are doubtful, and there.
func (w *world) noted(o *prologue.Options, args []prologue.Arg, res bpfexec.Result) bpfexec.Result {
	if !o.Doubts {
		return res
	}
	doubts := uint64(0)
	for i := range args {
		if args[i].Doubtful && res.Err&(1<<i) == 0 {
			doubts |= 1 << i
		}
	}
	res.Err |= doubts
	if o.Convention == prologue.ConventionRecord {
		res.Record += string(w.order().AppendUint64(nil, doubts))
	} else {
		res.Err |= doubts << 16
	}
	return res
}

// doubted returns arguments of which most are doubtful.
func doubted(args []prologue.Arg) []prologue.Arg {
	out := slices.Clone(args)
	for i := range out {
		out[i].Doubtful = i%3 != 1
	}
	return out
}
