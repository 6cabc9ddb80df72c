package oracle_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// Compilers use few of DWARF's operations. This test replaces the expressions in a fixture's
// location lists by random ones of the same length, with all operations that both evaluators
// know, and compares all its parameters.
func TestRandomExpressions(t *testing.T) {
	const name = "basic-gcc12-O2-dwarf5.elf"
	image, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	file, err := oracle.FromBytes(image)
	if err != nil {
		t.Fatal(err)
	}
	types := baseTypes(t, file)
	lists := f.Section(".debug_loclists")
	places := expressions(t, name, image)
	if len(places) < 20 {
		t.Fatalf("%d expressions are long enough", len(places))
	}
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	all := agree.NewFindings()
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		patched := bytes.Clone(image)
		for _, p := range places {
			g := generator{rng: rng, types: types[p.unit], unit: p.unit}
			copy(patched[lists.Offset+p.off:], g.expression(p.size))
		}
		img, err := dwarfloc.FromBytes(name, patched, nil)
		if err != nil {
			t.Fatal(err)
		}
		other, err := oracle.FromBytes(patched)
		if err != nil {
			t.Fatal(err)
		}
		all.Add(compare(t, img, other, other.Units, true))
		_ = img.Close()
	}
	t.Logf("%d expressions in %d rounds", len(places), rounds)
	for k := range all.Totals {
		if !strings.Contains(k, "expressions") && !strings.Contains(k, "not located") {
			delete(all.Totals, k)
		}
	}
	report(t, all, 0)
}

// place is an expression in .debug_loclists.
type place struct {
	off  uint64
	size int
	unit uint64
}

// expressions lists the expressions that are long enough for random ones.
func expressions(t *testing.T, name string, image []byte) []place {
	img, err := dwarfloc.FromBytes(name, image, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	file, err := oracle.FromBytes(image)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[uint64]place)
	for _, s := range sites {
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range params {
			expr, sec, off := v.Expression()
			if sec != ".debug_loclists" || len(expr) < 4 {
				continue
			}
			for _, u := range file.Units {
				if s.DIE >= u.Off && s.DIE < u.End {
					found[off] = place{off, len(expr), u.Off}
				}
			}
		}
	}
	var out []place
	for _, off := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[off])
	}
	return out
}

type baseType struct {
	off    uint64
	size   int
	signed bool
}

// baseTypes lists the integer base types of each unit.
func baseTypes(t *testing.T, file *oracle.File) map[uint64][]baseType {
	r, err := file.NewReader()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[uint64][]baseType)
	for _, u := range file.Units {
		types, err := r.IntegerTypes(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range types {
			out[u.Off] = append(out[u.Off], baseType{b.Off, b.Size, b.Signed})
		}
	}
	return out
}

// generator makes expressions that are valid: its stack holds the types of the
// values, nil for the generic one.
type generator struct {
	rng   *rand.Rand
	types []baseType
	unit  uint64
	stack []*baseType
	out   []byte

	branches bool
}

func (g *generator) expression(size int) []byte {
	end := []byte{0x9f}
	// dwarfloc does not take branches and pieces together.
	g.branches = g.rng.IntN(2) == 0
	kind := g.rng.IntN(6)
	if g.branches && kind > 0 {
		kind = 3
	}
	switch kind {
	case 0:
		end = nil // memory
	case 1:
		end = []byte{0x9f, 0x93, byte(1 + g.rng.IntN(8))}
	case 2:
		end = []byte{0x9f, 0x9d, byte(1 + g.rng.IntN(30)), byte(g.rng.IntN(20))}
	}
	if len(end) > size/2 {
		end = []byte{0x9f}
	}
	room := size - len(end)
	for tries := 0; tries < 200; tries++ {
		before, stack := len(g.out), slices.Clone(g.stack)
		g.operation()
		if len(g.out) > room {
			g.out, g.stack = g.out[:before], stack
		}
	}
	if len(g.stack) == 0 {
		g.out = append(g.out[:0], 0x30+byte(g.rng.IntN(32)))
	}
	for len(g.out) < room {
		g.out = append(g.out, 0x96) // nop
	}
	return append(g.out, end...)
}

func (g *generator) put(t *baseType, b ...byte) {
	g.out = append(g.out, b...)
	g.stack = append(g.stack, t)
}

func (g *generator) typeRef(t *baseType) []byte {
	if t == nil {
		return []byte{0}
	}
	return binary.AppendUvarint(nil, t.off)
}

func (g *generator) someType() *baseType { return &g.types[g.rng.IntN(len(g.types))] }

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	kind := g.rng.IntN(3)
	for i := range b {
		switch kind {
		case 0:
			b[i] = byte(g.rng.Uint32())
		case 1:
			b[i] = 0xff
		}
	}
	b[0] ^= byte(g.rng.IntN(4))
	return b
}

// push makes an operation that needs no operand on the stack.
func (g *generator) push() {
	reg := byte(g.rng.IntN(16))
	switch g.rng.IntN(12) {
	case 0, 1:
		g.put(nil, 0x30+byte(g.rng.IntN(32)))
	case 2:
		g.put(nil, 0x70+reg, byte(g.rng.IntN(128)))
	case 3:
		g.put(nil, append([]byte{0x08 + byte(g.rng.IntN(2))}, g.bytes(1)...)...)
	case 4:
		g.put(nil, append([]byte{0x0a + byte(g.rng.IntN(2))}, g.bytes(2)...)...)
	case 5:
		g.put(nil, append([]byte{0x0c + byte(g.rng.IntN(2))}, g.bytes(4)...)...)
	case 6:
		g.put(nil, append([]byte{0x0e + byte(g.rng.IntN(2))}, g.bytes(8)...)...)
	case 7:
		g.put(nil, append([]byte{0x10}, binary.AppendUvarint(nil, g.rng.Uint64()>>g.rng.IntN(64))...)...)
	case 8:
		g.put(nil, 0x11, byte(g.rng.IntN(128)))
	case 9:
		g.put(nil, append([]byte{0x03}, g.bytes(8)...)...)
	case 10:
		t := g.someType()
		g.put(t, append([]byte{0xa5, reg}, g.typeRef(t)...)...)
	case 11:
		t := g.someType()
		b := append([]byte{0xa4}, g.typeRef(t)...)
		g.put(t, append(append(b, byte(t.size)), g.bytes(t.size)...)...)
	}
}

func (g *generator) operation() {
	n := len(g.stack)
	if n == 0 || g.rng.IntN(3) == 0 {
		g.push()
		return
	}
	top := g.stack[n-1]
	switch k := g.rng.IntN(12); {
	case k < 5 && n >= 2:
		ops := []byte{0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x21, 0x22, 0x27, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x24, 0x25, 0x26}
		op := ops[g.rng.IntN(len(ops))]
		first := g.stack[n-2]
		if first != top && op != 0x24 && op != 0x25 && op != 0x26 {
			return
		}
		if op >= 0x29 {
			first = nil
		}
		g.stack = g.stack[:n-2]
		g.put(first, op)
	case k < 6:
		op := []byte{0x19, 0x1f, 0x20}[g.rng.IntN(3)]
		g.out = append(g.out, op)
	case k < 7:
		g.out = append(append(g.out, 0x23), byte(g.rng.IntN(128)))
	case k < 8:
		g.stack = g.stack[:n-1]
		if g.rng.IntN(2) == 0 {
			g.put(nil, 0x06)
		} else {
			g.put(nil, 0x94, 1<<g.rng.IntN(4))
		}
	case k < 9:
		t := g.someType()
		g.stack = g.stack[:n-1]
		g.put(t, append([]byte{0xa6, byte(t.size)}, g.typeRef(t)...)...)
	case k < 11:
		t := g.someType()
		if g.rng.IntN(3) == 0 {
			t = nil
		}
		size := func(t *baseType) int {
			if t == nil {
				return 8
			}
			return t.size
		}
		op := byte(0xa8)
		if size(t) == size(top) && g.rng.IntN(2) == 0 {
			op = 0xa9
		}
		g.stack = g.stack[:n-1]
		g.put(t, append([]byte{op}, g.typeRef(t)...)...)
	default:
		switch g.rng.IntN(5) {
		case 4:
			// Jump over some operations that do not change the depth of the stack.
			if !g.branches || n < 2 {
				return
			}
			over := [][]byte{{0x1f}, {0x20}, {0x23, 0x55}, {0x12, 0x22}, {0x20, 0x1f, 0x20}}[g.rng.IntN(5)]
			op := byte(0x2f) // skip
			if g.rng.IntN(4) > 0 {
				op = 0x28 // bra
				g.stack = g.stack[:n-1]
			}
			g.out = append(append(g.out, op, byte(len(over)), 0), over...)
		case 0:
			g.put(top, 0x12)
		case 1:
			if n >= 2 {
				g.put(g.stack[n-2], 0x14)
			}
		case 2:
			if n >= 2 {
				g.out = append(g.out, 0x16)
				g.stack[n-1], g.stack[n-2] = g.stack[n-2], g.stack[n-1]
			}
		case 3:
			if n >= 3 {
				g.out = append(g.out, 0x17)
				g.stack[n-1], g.stack[n-2], g.stack[n-3] = g.stack[n-2], g.stack[n-3], g.stack[n-1]
			}
		}
	}
}
