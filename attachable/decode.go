package attachable

// decoder is what is to be known of an architecture's instructions.
type decoder struct {
	// callSize is the bytes of ftrace's call at a function's beginning.
	callSize uint64
	// fixed is the bytes of every instruction, or 0 where they differ.
	fixed uint64
	// next decodes the instruction that some code begins with. ok is false for one that is
	// not known.
	next func(code []byte) (in instruction, ok bool)
}

// instruction is one instruction: its size, and where the processor may go from it. From
// a return it goes nowhere.
type instruction struct {
	size     int
	onward   bool  // to the instruction behind it, also when a call comes back
	branches bool  // to target
	lost     bool  // to an address that is not in the instruction
	target   int64 // bytes from the instruction's beginning
}

// decoders are the architectures whose instructions are decoded. For others mid-
// instruction addresses and loops are not checked.
var decoders = map[string]*decoder{
	"amd64": {callSize: 5, next: nextX86},
	"arm64": {callSize: 4, fixed: 4, next: nextARM64},
}

func (t *Table) decoder() *decoder { return decoders[t.img.Arch().Name] }

func (t *Table) callSize() uint64 {
	if d := t.decoder(); d != nil {
		return d.callSize
	}
	return 1
}

// instructionSize is the bytes of the instruction at an address, or 1 when it is not
// known.
func (t *Table) instructionSize(addr uint64) uint64 {
	d := t.decoder()
	if d == nil {
		return 1
	}
	if d.fixed > 0 {
		return d.fixed
	}
	code, err := t.img.Contents(addr, 16)
	if err != nil {
		return 1
	}
	in, ok := d.next(code)
	if !ok {
		return 1
	}
	return uint64(in.size)
}

// boundary reports whether an instruction begins at an address, as the kernel finds
// out: it decodes from the beginning of the function. checked is false when that does
// not work here.
func (t *Table) boundary(from, addr uint64) (at, checked bool) {
	d := t.decoder()
	if d == nil {
		return false, false
	}
	if d.fixed > 0 {
		return (addr-from)%d.fixed == 0, true
	}
	code, err := t.img.Contents(from, addr-from+16)
	if err != nil {
		return false, false
	}
	for from < addr {
		in, ok := d.next(code)
		if !ok || in.size <= 0 || in.size > len(code) {
			return false, false
		}
		from += uint64(in.size)
		code = code[in.size:]
	}
	return from == addr, true
}
