package ktable

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Patch is code that a kernel on x86 has replaced once it has booted: Code, and then NOPs, are at
// Addr instead of the Size bytes of the image.
type Patch struct {
	Addr uint64
	Size int
	Code []byte
}

// patching are symbols that Patches needs.
var patching = []string{"linux_banner", "__x86_return_thunk", "pv_ops", "_paravirt_nop", "nop_func"}

// alwaysReplaced are the features of processors (arch/x86/include/asm/cpufeatures.h, word and bit)
// whose alternatives are taken on nearly every machine. Of the others, which differ from processor to
// processor, the image's code is taken.
var alwaysReplaced = []struct {
	feature uint16
	not     bool // taken where the feature is absent
	size    int  // of entries in kernels that number it so; 0 for all
}{
	{8*32 + 16, true, 0},   // XENPV: everywhere but in guests of Xen's first kind
	{3*32 + 21, false, 0},  // ALWAYS
	{9*32 + 20, false, 0},  // SMAP: Intel's since 2014, AMD's since 2017
	{3*32 + 18, false, 12}, // LFENCE_RDTSC until Linux 6.2: the kernel sets it for Intel and AMD
	{20*32 + 2, false, 14}, // and since 6.3
	{1*32 + 27, false, 0},  // RDTSCP: all since 2008
}

// How an alternative says more than its feature: ALTINSTR_FLAG_INV until Linux 6.2, and since 6.3
// ALT_FLAG_NOT and ALT_FLAG_DIRECT_CALL (arch/x86/include/asm/alternative.h).
const (
	flagInverted = 1 << 15
	flagNot      = 1 << 0
	flagDirect   = 1 << 1
)

// Patches returns what the kernel replaces on nearly every machine, by address: calls through
// pv_ops, and alternatives (apply_paravirt and apply_alternatives in
// arch/x86/kernel/alternative.c). Returns are in ReturnThunk, since they need no table. The error is
// about a damaged image.
func (m *Marks) Patches() ([]Patch, error) {
	var out []Patch
	calls, err := m.read(paravirt)
	if err != nil {
		return nil, err
	}
	if ops, ok := m.at["pv_ops"]; ok && calls != nil {
		calls.each(func(e entry) {
			addr := e.word(0)
			out = append(out, Patch{addr, int(e.d[9]), m.direct(addr, ops+8*uint64(e.d[8]))})
		})
	}
	alternatives, err := m.read(replaced)
	if err != nil {
		return nil, err
	}
	if alternatives != nil {
		alternatives.each(func(e entry) {
			if p, ok := m.replacement(e); ok {
				out = append(out, p)
			}
		})
	}
	// Of several for an address the last one that is taken stays.
	return radix.Sort(out, func(p *Patch) uint64 { return p.Addr }), nil
}

// replacement returns what an alternative puts there, if it is always taken.
func (m *Marks) replacement(e entry) (p Patch, ok bool) {
	feature, flags := e.u16(8), uint16(0)
	switch len(e.d) {
	case 12:
		if feature&flagInverted != 0 {
			feature, flags = feature&^flagInverted, flagNot
		}
	case 14:
		flags = e.u16(10)
	}
	taken := false
	for _, a := range alwaysReplaced {
		taken = taken || a.feature == feature && a.not == (flags&flagNot != 0) && (a.size == 0 || a.size == len(e.d))
	}
	a := alternativeOf(e)
	if !taken {
		return p, false
	}
	p = Patch{Addr: a.at, Size: int(a.size)}
	if flags&flagDirect != 0 {
		code, err := m.f.Bytes(a.at, a.size)
		if err != nil {
			return p, false
		}
		if at, ok := pointer(code, a.at); ok {
			p.Code = m.direct(a.at, at)
			return p, true
		}
	}
	code, err := m.f.Bytes(a.with, a.used)
	if err != nil {
		return p, false
	}
	p.Code = moved(code, a.with-a.at)
	return p, true
}

// pointer returns where an indirect call reads its target.
func pointer(code []byte, addr uint64) (at uint64, ok bool) {
	le := binary.LittleEndian
	switch {
	case bytes.HasPrefix(code, []byte{0xff, 0x15}) && len(code) >= 6: // CALL of what is at RIP and a distance
		return addr + 6 + uint64(int64(int32(le.Uint32(code[2:])))), true
	case bytes.HasPrefix(code, []byte{0xff, 0x14, 0x25}) && len(code) >= 7: // of what is at an address
		return uint64(int64(int32(le.Uint32(code[3:])))), true
	}
	return 0, false
}

// direct returns the code that the kernel puts in place of a call of a function whose address is
// stored at an address: none if it does nothing.
func (m *Marks) direct(addr, stored uint64) []byte {
	d, err := m.f.Bytes(stored, 8)
	if err != nil {
		return nil
	}
	to := binary.LittleEndian.Uint64(d)
	for _, nothing := range []string{"_paravirt_nop", "nop_func"} {
		if at, ok := m.at[nothing]; ok && at == to {
			return nil
		}
	}
	return binary.LittleEndian.AppendUint32([]byte{0xe8}, uint32(to-addr-5))
}

// moved returns code with its branches of 32 bits as they are when it is a distance before where it
// is in the image.
func moved(code []byte, distance uint64) []byte {
	for at := 0; at < len(code); {
		x, ok := insn.DecodeX86(code[at:])
		if !ok {
			break
		}
		_, branch := x.Branch()
		if at += x.Size; branch && x.Size >= 5 || x.OpcodeSize == 1 && x.Opcode[0] == 0xe8 {
			le := binary.LittleEndian
			le.PutUint32(code[at-4:], le.Uint32(code[at-4:])+uint32(distance))
		}
	}
	return code
}

// ReturnThunk returns where code jumps instead of returning, or 0. On processors that need no such
// thunk, the kernel replaces the jumps by RET and INT3 (apply_returns).
func (m *Marks) ReturnThunk() uint64 { return m.at["__x86_return_thunk"] }

// Release returns the version of a kernel, from the text that it
// prints first (linux_banner).
func (m *Marks) Release() (major, minor int, ok bool) {
	addr, found := m.at["linux_banner"]
	if !found {
		return 0, 0, false
	}
	d, err := m.f.Bytes(addr, 32)
	if err != nil {
		return 0, 0, false
	}
	_, err = fmt.Sscanf(string(d), "Linux version %d.%d", &major, &minor)
	return major, minor, err == nil
}
