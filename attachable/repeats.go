package attachable

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Repeats reports whether the processor can come back to an inlined site's address
// without leaving the site's own code: then its probe fires on every turn of that loop.
// checked is false when some of the code could not be followed.
func (t *Table) Repeats(s *dwarfloc.Site) (again, checked bool, err error) {
	if s.Kind == dwarfloc.SiteEntry {
		return false, true, nil
	}
	d := t.decoder()
	if d == nil {
		return false, false, nil
	}
	ranges, err := s.Ranges()
	if err != nil {
		return false, false, err
	}
	b := body{next: d.Next}
	spans := make([]span, len(ranges))
	for i, r := range ranges {
		spans[i] = span{r[0], r[1]}
	}
	for _, r := range apart(spans) {
		code, err := t.img.Bytes(r.lo, r.hi-r.lo)
		if err != nil {
			return false, false, err
		}
		b.parts = append(b.parts, part{lo: r.lo, code: code})
	}
	again, checked = b.comesBackTo(s.Addr)
	return again, checked, nil
}

// apart returns ranges in order, each address in one of them.
func apart(ranges []span) []span {
	slices.SortFunc(ranges, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	out := ranges[:0]
	end := uint64(0)
	for _, r := range ranges {
		if r.lo = max(r.lo, end); r.hi > r.lo {
			out = append(out, r)
			end = r.hi
		}
	}
	return out
}

// body is the code of one body.
type body struct {
	next  func(code []byte) (insn.Insn, bool)
	parts []part // in order, apart
}

// part is some code at an address.
type part struct {
	lo   uint64
	code []byte
	seen []bool // which instructions were followed, by the offsets that they begin at
}

// comesBackTo follows the code from an address on all ways that stay in the body, each
// instruction once. again is set if one of them leads to the address again.
func (b *body) comesBackTo(addr uint64) (again, checked bool) {
	checked = true
	left := false // the address, for the first time
	for ways := []uint64{addr}; len(ways) > 0; {
		at := ways[len(ways)-1]
		ways = ways[:len(ways)-1]
		for {
			if left && at == addr {
				return true, true
			}
			left = true
			p := b.holding(at)
			if p == nil || !p.follow(at) {
				break
			}
			in, ok := b.next(p.code[at-p.lo:])
			if !ok {
				checked = false
				break
			}
			if in.Branches {
				ways = append(ways, at+uint64(in.Target))
			}
			checked = checked && !in.Lost
			if !in.Onward {
				break
			}
			at += uint64(in.Size)
		}
	}
	return false, checked
}

// holding returns the part that holds an address, or nil.
func (b *body) holding(addr uint64) *part {
	i := sort.Search(len(b.parts), func(i int) bool { return b.parts[i].lo > addr })
	if i == 0 || addr-b.parts[i-1].lo >= uint64(len(b.parts[i-1].code)) {
		return nil
	}
	return &b.parts[i-1]
}

// follow marks an instruction, and reports false when it was marked before.
func (p *part) follow(at uint64) bool {
	if p.seen == nil {
		p.seen = make([]bool, len(p.code))
	}
	was := p.seen[at-p.lo]
	p.seen[at-p.lo] = true
	return !was
}
