package prologue

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// Patterns of texts. A pattern is a machine whose state is a set of positions in it, one bit each: bit
// n is set if what has been read matches the first n characters of the pattern. Each byte of the text
// makes a new set of the old one, without a jump, so that the verifier goes through it once. All bytes
// are written out: loops would need Linux 5.3.

// maxGlobText is how many bytes of a text are looked at, its NUL included.
const maxGlobText = 64

// globWeight is what a pattern counts of maxNodes, so that jumps reach over all of a prologue.
const globWeight = maxNodes / 4

// maxGlobLetters bounds the different characters of a pattern: each takes instructions for each byte.
const maxGlobLetters = 16

// glob is a pattern that is ready to be written.
type glob struct {
	length  int             // characters
	any     uint64          // positions at which any character follows
	star    uint64          // positions at which any text follows
	letters []byte          // the different characters, sorted
	at      map[byte]uint64 // positions at which each follows
}

// compileGlob reads a pattern.
func compileGlob(text string) (*glob, error) {
	g := &glob{at: make(map[byte]uint64)}
	for i := 0; i < len(text); i++ {
		b := text[i]
		if b == '*' {
			g.star |= 1 << g.length
			continue
		}
		if g.length == 63 {
			return nil, refuse(reasons.Unsupported, "a pattern of more than 63 characters")
		}
		if b == '?' {
			g.any |= 1 << g.length
		} else {
			if b == '\\' && i < len(text)-1 {
				i++
				b = text[i]
			}
			g.at[b] |= 1 << g.length
			if !slices.Contains(g.letters, b) {
				g.letters = append(g.letters, b)
			}
		}
		g.length++
	}
	if len(g.letters) > maxGlobLetters {
		return nil, refuse(reasons.Unsupported, "a pattern of more than %d different characters", maxGlobLetters)
	}
	slices.Sort(g.letters)
	return g, nil
}

// globs sets dst to whether a text matches a pattern.
func (c *computer) globs(n *node, dst asm.Register, free regSet) {
	g, err := compileGlob(n.glob.Pattern())
	if err != nil {
		panic(err) // lowering has compiled it
	}
	slot := c.push(maxGlobText)
	most := maxGlobText
	if n.a != nil {
		most = min(most, int(n.k)+1)
		if n.k == 0 {
			most = maxGlobText
		}
		c.compute(n.a, asm.R3, (free|callerSaved|setOf(dst))&^setOf(asm.R3))
		for at := 0; at < most; at += 8 {
			c.clearSlot(slot + at)
		}
		c.readText(c.reads, slot, most)
		c.jumpImm(asm.JSLT, asm.R0, 0, c.fault)
	} else {
		most = bpfstack.CommSize
		c.callInto(asm.FnGetCurrentComm, slot, most)
	}
	// R0 is the set, R2 the byte, R3 the next set, R4 and R5 are for what is between.
	var end label
	c.imm(asm.Mov, asm.R0, 1)
	for i := range most - 1 {
		c.load(asm.R2, asm.R10, slot+i, 1)
		c.jumpImm(asm.JEq, asm.R2, 0, &end)
		c.maskOf(asm.R3, g.any)
		if g.any != 0 {
			c.imm(asm.LSh, asm.R3, 1)
		}
		if g.star != 0 {
			c.maskOf(asm.R4, g.star)
			c.reg(asm.Or, asm.R3, asm.R4)
		}
		for _, b := range g.letters {
			c.reg(asm.Mov, asm.R5, asm.R2)
			c.imm(asm.Xor, asm.R5, int32(b))
			c.imm(asm.Add, asm.R5, -1)
			c.imm(asm.ArSh, asm.R5, 63) // all ones if the byte is that character, or else 0
			c.maskOf(asm.R4, g.at[b])
			c.reg(asm.And, asm.R4, asm.R5)
			c.imm(asm.LSh, asm.R4, 1)
			c.reg(asm.Or, asm.R3, asm.R4)
		}
		c.reg(asm.Mov, asm.R0, asm.R3)
	}
	c.bind(&end)
	c.imm(asm.RSh, asm.R0, int32(g.length))
	c.imm(asm.And, asm.R0, 1)
	c.move(dst, asm.R0)
	c.pop(maxGlobText)
}

// maskOf sets a register to the bits of R0 that are in a mask.
func (c *computer) maskOf(dst asm.Register, mask uint64) {
	switch {
	case mask == 0:
		c.imm(asm.Mov, dst, 0)
	case bits.Len64(mask) < 32:
		c.reg(asm.Mov, dst, asm.R0)
		c.imm(asm.And, dst, int32(mask))
	default:
		c.constant(dst, mask)
		c.reg(asm.And, dst, asm.R0)
	}
}
