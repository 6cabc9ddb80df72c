package jumptable

import (
	"encoding/binary"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// A switch whose default cannot be reached has no comparison: LLVM's optimizer drops it where a number is read from memory, and so does GCC for
// __builtin_unreachable; and where the number is compared in memory, nothing tells that it is the same one. The table itself then says where it ends.

// Open is Targets for a table of which no instruction says how many entries it has: they are read to where one is none. Addresses of eight bytes, and distances
// of four that are added to the table's own address, do not lead into the function where another function's table follows: its distances lead so many
// bytes before that function as the tables are apart. Where a further table of the same function follows, its code has that address. Another table's entry
// that leads to where an instruction may begin, by chance, would be taken for one; and an address in the code by chance would end the table, and leave code of
// which it is not known how it is reached.
//
// within reports whether an address is that of the function's code, which may have further parts. Instructions of a fixed length have tables of one or
// two bytes, of which each entry leads into the function: those are not read.
func (s *Search) Open(at uint32, within func(addr uint64) bool) (targets []uint64, ok bool) {
	if s.arch.Fixed > 0 || !s.turn(at) {
		return nil, false
	}
	t, goal, head := s.alone()
	l, result := s.lookup(t, goal)
	if result != tableFound {
		return nil, false
	}
	base, ok := s.bases(t, goal, l, head)
	if !ok {
		return nil, false
	}
	size := uint64(t.Symbols[l.entry].Bits / 8)
	if size != 4 && size != 8 || size == 8 && goal.Single() != l.entry || l.index.Terms[0].Scale != size {
		return nil, false
	}
	e := symbolic.Evaluation{Trace: t, Read: s.read, Given: base, BigEndian: s.arch.BigEndian}
	index := l.index.Terms[0].Symbol
	first, after := uint64(0), uint64(0)
	for after == 0 {
		base[index] = uint64(len(targets))
		entry, known := e.Value(t.Symbols[l.entry].Of)
		if len(targets) == 0 {
			if first = entry; !known || !s.refersTo(entry, size == 8) {
				return nil, false
			}
		}
		to, readable := e.Value(goal)
		switch {
		case len(targets) == mostEntries:
			return nil, false
		case entry > first && s.refersTo(entry, size == 8):
			after = entry
		case readable && !within(to) && within(to-1): // the end, for a number that there is not: LLVM has no code for it
			targets = append(targets, 0)
		case !readable || !within(to) || !s.plausible(to):
			after = entry
		default:
			targets = append(targets, to)
		}
	}
	if size == 4 {
		targets = targets[:(s.nextTable(first, after)-first)/size]
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	if len(targets) > 0 && targets[0] == 0 {
		targets = targets[1:]
	}
	return targets, len(targets) > 1
}

// nearby is in how many bytes before and behind a function others are looked for whose tables may follow its own: compilers write both in the same order.
const nearby = 1 << 18

// extent is where a table begins, behind which address it does not go on, and where the next one begins.
type extent struct{ first, after, next uint64 }

// nextTable returns where the first table begins, behind the beginning of one and not behind another address, to which an instruction near the function refers, and
// else that address: by the distance from its end, as a constant for a register.
func (s *Search) nextTable(first, after uint64) uint64 {
	const page, least, overlap = 1 << 12, 1 << 4, 15 // bytes that are read at once; and of an instruction, at most
	if s.next.first == first && s.next.after == after {
		return s.next.next
	}
	next := after
	look := func(at, n uint64) bool {
		d := s.read(at, int(n)+overlap)
		for i := 4; i <= len(d); i++ {
			end := at + uint64(i)
			to := end + uint64(int64(int32(binary.LittleEndian.Uint32(d[i-4:]))))
			if to-first-1 < next-first-1 && s.loads(d[max(0, i-overlap):i], end, to) {
				next = to
			}
		}
		return d != nil
	}
	// To both sides, as far as there is code.
	for at, n := s.code.Addr, uint64(page); n >= least && at < s.code.Addr+nearby; {
		if look(at, n) {
			at += n
		} else {
			n /= 2
		}
	}
	for at, n := s.code.Addr, uint64(page); n >= least && s.code.Addr-at < nearby; {
		if look(at-n, n) {
			at -= n
		} else {
			n /= 2
		}
	}
	s.next = extent{first, after, next}
	return next
}

// loads reports whether code ends with an instruction that makes a register a constant.
func (s *Search) loads(code []byte, end, constant uint64) bool {
	for size := 5; size <= len(code); size++ {
		at := code[len(code)-size:]
		if in, ok := s.arch.Next(at); !ok || in.Size != size {
			continue
		}
		t := s.arch.Begin()
		s.arch.Follow(t, at, end-uint64(size))
		for _, r := range t.Regs {
			if r.IsConstant() && r.Const == constant {
				return true
			}
		}
	}
	return false
}

// alone follows the block of the jump, behind those that are the only ones before it, as far as the jump's target needs them.
func (s *Search) alone() (t *symbolic.Trace, goal symbolic.Value, head int32) {
	path := []int32{s.blockOf(s.jump)}
	for {
		t = s.arch.Begin()
		for i := len(path) - 1; i >= 0; i-- {
			s.run(t, path[i], i == 0, &goal)
		}
		head = path[len(path)-1]
		if _, result := s.lookup(t, goal); result != tableMore || len(path) == mostBlocks || len(s.into[head]) != 1 {
			return t, goal, head
		}
		path = append(path, s.into[head][0].from)
	}
}

// refersTo reports whether an instruction refers to an address: it ends with the distance to it, or the address itself, which of a small address any number may be. What is
// not reached yet are instructions too, one behind the other.
func (s *Search) refersTo(addr uint64, absolute bool) bool {
	which := 0
	if absolute {
		which = 1
	}
	refers := s.refers[which]
	if refers == nil {
		refers = make(map[uint64]bool)
		s.refers[which] = refers
		for at := 0; at < len(s.code.Bytes); {
			in, ok := s.arch.Next(s.code.Bytes[at:])
			if !ok {
				in.Size = 1
			}
			if at += in.Size; in.Size <= 4 || at > len(s.code.Bytes) {
				continue
			}
			v := uint64(int64(int32(binary.LittleEndian.Uint32(s.code.Bytes[at-4:]))))
			refers[s.code.Addr+uint64(at)+v] = true
			if absolute {
				refers[v] = true
			}
		}
	}
	return refers[addr]
}
