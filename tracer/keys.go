package tracer

import (
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// An argument that is a structure is printed with the texts and slices that it refers to, which a plan with Options.Keys fetches. They are in a
// key, after the argument, and where the argument itself has them there are zeros: texts that are equal are often in several places.

// ref names what is fetched: the index of an argument, and above partShift 0 for itself, or 1 and the index in Argument.Parts.
type ref int

const partShift = 16

func partOf(arg, part int) ref { return ref(arg | (part+1)<<partShift) }

// arg returns the index of the argument.
func (r ref) arg() int { return int(r) & (1<<partShift - 1) }

// field returns the index in a record's fields at a site, or -1.
func (r ref) field(s *plan.Site) int {
	part := int(r)>>partShift - 1
	if part < 0 {
		return r.arg()
	}
	n := len(s.Args)
	for i := range r.arg() {
		n += len(s.Args[i].Parts)
	}
	if part >= len(s.Args[r.arg()].Parts) {
		return -1
	}
	return n + part
}

// source is where something is in what the programs of an instance get, and its bit in err, or -1 if it is not there. Zeros are the places in
// it that have something else's bytes.
type source struct {
	prologue.Field
	Bit   int
	Zeros []prologue.Field
}

// sourceOf returns where an instance of a plan has something.
func sourceOf(p *plan.Plan, instance int, r ref) source {
	if p.Convention != prologue.ConventionRecord {
		return source{Field: prologue.Field{Offset: 8 * r.arg(), Size: 8}, Bit: r.arg()}
	}
	in := &p.Instances[instance]
	s := &p.Sites[in.Sites[0]]
	n := r.field(s)
	if n < 0 {
		return source{Bit: -1}
	}
	from := source{Field: in.Prologue.Layout.Fields[n], Bit: n}
	if n == r.arg() {
		for _, f := range s.Args[n].Parts {
			if f.Size > 0 {
				from.Zeros = append(from.Zeros, f)
			}
		}
	}
	return from
}

// piece is where something is in a key.
type piece struct {
	arg      int // index in counted.args, and of its bit
	at, size int
}

// maxMissing is how many bits the head of a key has for what was not fetched.
const maxMissing = 32

// pieces gives an argument, and what it refers to, places in the key.
func (c *counted) pieces(arg int) (out []piece) {
	add := func(of int) {
		out = append(out, piece{len(c.args), c.key, c.room(of)})
		c.args, c.key = append(c.args, of), c.key+c.room(of)
	}
	add(arg)
	if arg < 0 {
		return out
	}
	p, r := c.of(arg)
	most := 0
	for i := range p.Sites {
		most = max(most, len(p.Sites[i].Args[r.arg()].Parts))
	}
	for k := range most {
		if part := partOf(r.arg(), k); len(c.args)+len(c.what.By) < maxMissing {
			add(c.use(p, part))
		}
	}
	return out
}

// use returns the number by which a part of an argument is known.
func (c *counted) use(p *plan.Plan, r ref) int {
	if c.run == nil {
		return int(r)
	}
	return c.run.use(usedArg{plan: p, ref: r})
}

// zeros writes zeros to parts of what is at an offset from a register. R0 is used.
func zeros(to asm.Register, at int, parts []prologue.Field) (insns asm.Instructions) {
	if len(parts) > 0 {
		insns = append(insns, asm.Mov.Imm(asm.R0, 0))
	}
	for _, f := range parts {
		for from, end := at+f.Offset, at+f.Offset+f.Size; from < end; {
			n, width := 1, asm.Byte
			if from%8 == 0 && end-from >= 8 {
				n, width = 8, asm.DWord
			}
			insns = append(insns, asm.StoreMem(to, int16(from), asm.R0, width))
			from += n
		}
	}
	return insns
}

// argumentKey decodes an argument of a key at a site, or, without one, at any where it is fetched.
func (c *counted) argumentKey(site int, key []byte, pieces []piece) Key {
	arg := c.args[pieces[0].arg]
	if arg < 0 {
		return Key{Text: "?"}
	}
	p, r := c.of(arg)
	if site < 0 {
		site = slices.IndexFunc(p.Sites, func(s plan.Site) bool { return s.Instance >= 0 && s.Args[r.arg()].Fetched() })
	}
	if site < 0 || p.Sites[site].Instance < 0 {
		return Key{Text: "?"}
	}
	// What the programs got there, as far as the key has it.
	in := p.Sites[site].Instance
	record, err := make([]byte, recordSize(p, &p.Instances[in])), ^uint64(0)
	missing := binary.NativeEndian.Uint64(key) >> 32
	for _, x := range pieces {
		_, r := c.of(c.args[x.arg])
		from := sourceOf(p, in, r)
		if from.Bit < 0 || missing>>x.arg&1 != 0 && x != pieces[0] {
			continue
		}
		if missing>>x.arg&1 == 0 {
			err &^= 1 << from.Bit
		}
		copy(record[from.Offset:from.Offset+from.Size], key[x.at:x.at+x.size])
	}
	v := p.Values(site, err, record)[r.arg()]
	return Key{v.String(), v.Any()}
}
