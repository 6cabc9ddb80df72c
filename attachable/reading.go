package attachable

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/ktable"
)

// reading is what is known of the instructions of one function on amd64: from a symbol to the next.
type reading struct {
	span
	// begins has a bit for each byte of the image's code: whether an instruction begins there. From
	// strange on it does not decode.
	begins  []uint64
	strange uint64
	code    []byte   // as it is once the kernel has booted
	targets []uint64 // addresses to which jumps lead, in order
	blocked bool     // no kprobe in it is optimised
}

// from returns the function's code from an address on.
func (r *reading) from(addr uint64) []byte {
	if addr < r.lo || addr-r.lo >= uint64(len(r.code)) {
		return nil
	}
	return r.code[addr-r.lo:]
}

// readings keeps the readings of some functions: questions about one function often follow each
// other. Each function has one place, which the last one asked about takes.
type readings [64]atomic.Pointer[reading]

func (t *Table) reading(f span) *reading {
	const fibonacci = 0x9e3779b97f4a7c15
	place := &t.readings[f.lo*fibonacci>>58]
	if r := place.Load(); r != nil && r.span == f {
		return r
	}
	r := t.read(f)
	place.Store(r)
	return r
}

func (t *Table) read(f span) *reading {
	r := &reading{span: f, code: codeAt(t.img, f.lo, f.hi-f.lo)}
	r.begins = make([]uint64, len(r.code)/64+1)
	i, _ := slices.BinarySearchFunc(t.patches, r.lo, func(p ktable.Patch, lo uint64) int { return cmp.Compare(p.Addr, lo) })
	if i < len(t.patches) && t.patches[i].Addr < r.hi {
		r.decode(r.lo)
		t.patch(r, t.patches[i:])
		t.follow(r, false)
	} else {
		t.follow(r, true)
	}
	return r
}

// decode notes where instructions begin from an address on.
func (r *reading) decode(from uint64) {
	at := int(from - r.lo)
	for at < len(r.code) {
		x, ok := insn.DecodeX86(r.code[at:])
		if !ok {
			break
		}
		r.begin(at)
		at += x.Size
	}
	r.strange = r.lo + uint64(at)
}

func (r *reading) begin(at int) { r.begins[at/64] |= 1 << (at % 64) }

// patch replaces what the kernel replaces when it boots, as patches say, of which the first is in the function.
func (t *Table) patch(r *reading, patches []ktable.Patch) {
	for i := range patches {
		p := &patches[i]
		if p.Addr >= r.hi {
			break
		}
		code := r.from(p.Addr)
		if len(code) < p.Size || p.Size < len(p.Code) {
			continue
		}
		for n := copy(code, p.Code); n < p.Size; n++ {
			code[n] = nopX86
		}
	}
}

const nopX86, int3X86, retX86 = 0x90, 0xcc, 0xc3

// follow notes the targets of all jumps, and whether can_optimize (arch/x86/kernel/kprobes/opt.c)
// refuses the function. With begins it notes where instructions begin too: the code is as in the file.
func (t *Table) follow(r *reading, begins bool) {
	const bytesOfOne = 16 // code for each jump, about
	r.targets = make([]uint64, 0, len(r.code)/bytesOfOne)
	fault, _ := slices.BinarySearch(t.faults, r.lo)
	addr := r.lo
	for addr < r.hi && !r.blocked {
		for fault < len(t.faults) && t.faults[fault] < addr {
			fault++
		}
		code := r.from(addr)
		x, ok := insn.DecodeX86(code)
		if !ok || fault < len(t.faults) && t.faults[fault] == addr {
			r.blocked = true
			break
		}
		if to, jumps := x.Branch(); jumps {
			to := addr + uint64(to)
			if to == t.x86.ret && to != 0 {
				// apply_returns: the processor needs no thunk.
				code[0] = retX86
				for i := 1; i < x.Size; i++ {
					code[i] = int3X86
				}
			} else if t.x86.thunks.hi > 0 && to >= t.x86.thunks.lo && to <= t.x86.thunks.hi {
				r.blocked = true
			}
			if to > r.lo && to <= r.hi {
				r.targets = append(r.targets, to)
			}
		}
		if t.x86.indirect && x.OpcodeSize == 1 && x.Opcode[0] == 0xff && x.Reg()&6 == 4 {
			r.blocked = true
		}
		if begins {
			r.begin(int(addr - r.lo))
		}
		addr += uint64(x.Size)
	}
	if begins {
		r.decode(addr)
	}
	slices.Sort(r.targets)
}

// symbolsX86 are the symbols that say how a kernel was built.
var symbolsX86 = []string{
	"optprobe_template_entry", "preempt_schedule", "__indirect_thunk_start", "__indirect_thunk_end", "__x86_indirect_thunk_array", "__ibt_endbr_seal",
}

// readX86 reads what Method needs besides what At needs.
func (t *Table) readX86(marks *ktable.Marks) (err error) {
	has := func(name string) bool {
		_, ok := marks.Address(name)
		return ok
	}
	t.x86 = x86Rules{
		optprobes: has("optprobe_template_entry"), preemptible: has("preempt_schedule"), ret: marks.ReturnThunk(),
		groups: slices.Compare(t.release[:], []int{6, 9}) >= 0,
		// __indirect_thunk_start went when Linux 6.6 gave the check up.
		indirect: has("__indirect_thunk_start") || !has("__x86_indirect_thunk_array") && !has("__ibt_endbr_seal"),
	}
	if lo, hi, ok := marks.Between("__indirect_thunk_start", "__indirect_thunk_end"); ok {
		t.x86.thunks = span{lo, hi}
	}
	if t.faults, err = marks.Addresses(ktable.Faults); err != nil {
		return err
	}
	slices.Sort(t.faults)
	t.patches, err = marks.Patches()
	return err
}
