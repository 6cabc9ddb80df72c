package witness

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// To find out what the witnesses of a body say means to read the parameters, the code and the line table once more, and what they say is the image's, not the
// question's. So it is kept with the image's index: a table of the bodies of which one speaks, by unit and record, and what is said of them.

// Claim is what a witness says of a parameter that the debug information has lost.
type Claim struct {
	Parameter int // its number, by whoever asks
	value     *loc.Expr
	by        by
	at        uint64 // the instruction
	size      uint8  // of it, in bytes
	register  uint16 // if it passes the parameter on
	distance  int64  // how far the parameter is from what the instruction accesses
	controls  int
	inner     int32  // the record of the body that the parameter is handed on to
	name      string // of the inner body's parameter
}

// by is how a witness knows a parameter.
type by uint8

const (
	accessed by = iota // an instruction accesses what the parameter points to
	called             // it calls it
	passed             // it passes it on
	handedOn           // a parameter of an inner body has it
	member             // a statement reads a member of what it points to
	bys
)

// Location returns where the parameter is.
func (k *Claim) Location(build *eval.Builder) loc.Location {
	l := build.Value(k.value)
	switch l.Rule = rule.Call; k.by {
	case accessed:
		l.Rule = rule.Operand
	case member:
		l.Rule = rule.Member
	}
	return l
}

// Because says how the witness of the body at a spot knows it.
func (k *Claim) Because(s *entries.Spot) (string, error) {
	if k.by == handedOn {
		inner, err := entries.KeyOf(s.U, k.inner)
		return fmt.Sprintf("%#x: it passes it to %s as %s, as in %d bodies where it is known", s.Addr, inner.Name, k.name, k.controls), err
	}
	code, err := s.U.Img.Code.Bytes(k.at, uint64(k.size))
	what := "it accesses what is here"
	switch k.by {
	case called:
		what = "it calls it"
	case passed:
		what = "it passes it in " + s.U.Img.Arch().RegisterName(uint64(k.register))
	case member:
		what = "it reads a member of what is here"
	}
	if k.distance != 0 {
		what += fmt.Sprintf(", %+d bytes", k.distance)
	}
	return fmt.Sprintf("%#x: % x: %s, as in %d bodies where it is known", k.at, code, what, k.controls), err
}

// claims are those of an image that are known.
type claims struct {
	mu     sync.Mutex
	read   bool
	table  []byte            // the index's: keptBodySize for each body
	bodies []byte            // what the table leads to
	added  map[uint64][]byte // by body: those that are not in the table
}

// keptBodySize is the size in bytes of a body in the table: which one it is, and where its claims begin.
const keptBodySize = 8 + 4

// bodyOf returns the number of the body at a spot.
func bodyOf(s *entries.Spot) uint64 { return uint64(s.U.Number)<<32 | uint64(uint32(s.Rec)) }

// Kept appends what is known that the witnesses of the body at a spot say of its parameters. known is false if that is nothing.
func (c *Controls) Kept(out []Claim, s *entries.Spot, facts *Facts) (_ []Claim, known bool, err error) {
	packed := c.claims.of(c.img.Index, bodyOf(s))
	if packed == nil {
		return out, false, nil
	}
	n := len(out)
	for b := (bin.Reader{D: packed}); b.P < len(packed); {
		k := unpackClaim(&b)
		out = append(out, k)
		if b.Bad || k.inner < 0 || int(k.inner) >= len(s.U.Recs) || k.by != handedOn && !s.U.Img.Executable(k.at) {
			return out[:n], false, nil // they are found again
		}
	}
	k, err := facts.Function(s.U, s.Rec)
	if err == nil {
		c.ask(k)
	}
	return out, true, err
}

// Keep notes what the witnesses of the body at a spot say of all its parameters.
func (c *Controls) Keep(s *entries.Spot, said []Claim) {
	var packed []byte
	for i := range said {
		packed = said[i].pack(packed)
	}
	x := &c.claims
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.added == nil {
		x.added = make(map[uint64][]byte)
	}
	x.added[bodyOf(s)] = packed
}

// Claims returns all claims in the form of the index's block, and whether there are more than it has.
func (c *Controls) Claims() (packed []byte, more bool) {
	x := &c.claims
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.added == nil {
		return nil, false
	}
	x.begin(c.img.Index)
	all := maps.Clone(x.added)
	for i := range len(x.table) / keptBodySize {
		if body := x.body(i); all[body] == nil {
			all[body] = x.packed(i)
		}
	}
	packed = binary.AppendUvarint(nil, uint64(len(all)))
	order, end := slices.Sorted(maps.Keys(all)), 0
	for _, body := range order {
		packed = binary.LittleEndian.AppendUint64(packed, body)
		packed = binary.LittleEndian.AppendUint32(packed, uint32(end))
		end += len(all[body])
	}
	for _, body := range order {
		packed = append(packed, all[body]...)
	}
	return packed, true
}

// begin reads what the index has.
func (x *claims) begin(from *index.Index) {
	if x.read {
		return
	}
	x.read = true
	if !from.Keeps() {
		return
	}
	b := bin.Reader{D: from.DerivedOfImage(index.BlockClaims)}
	n := b.ULEB()
	if n > uint64(len(b.D)) {
		return
	}
	if table := b.Bytes(n * keptBodySize); !b.Bad {
		x.table, x.bodies = table, b.D[b.P:]
	}
}

// of returns the packed claims of a body, or nil.
func (x *claims) of(from *index.Index, body uint64) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	if packed := x.added[body]; packed != nil {
		return packed
	}
	x.begin(from)
	n := len(x.table) / keptBodySize
	i := sort.Search(n, func(i int) bool { return x.body(i) >= body })
	if i == n || x.body(i) != body {
		return nil
	}
	return x.packed(i)
}

// body returns the number of a body of the table.
func (x *claims) body(i int) uint64 { return binary.LittleEndian.Uint64(x.table[i*keptBodySize:]) }

// packed returns the claims of a body of the table, or nil if it is damaged.
func (x *claims) packed(i int) []byte {
	from, to := x.start(i), uint64(len(x.bodies))
	if (i+1)*keptBodySize < len(x.table) {
		to = x.start(i + 1)
	}
	if from > to || to > uint64(len(x.bodies)) {
		return nil
	}
	return x.bodies[from:to]
}

func (x *claims) start(i int) uint64 {
	return uint64(binary.LittleEndian.Uint32(x.table[i*keptBodySize+8:]))
}

// pack appends the form for unpackClaim.
func (k *Claim) pack(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(k.Parameter))
	b = append(b, byte(k.by))
	b = binary.AppendUvarint(b, uint64(k.controls))
	if k.by == handedOn {
		b = binary.AppendUvarint(b, uint64(k.inner))
		b = append(binary.AppendUvarint(b, uint64(len(k.name))), k.name...)
	} else {
		b = append(binary.AppendUvarint(b, k.at), k.size)
		b = binary.AppendUvarint(b, uint64(k.register))
		b = binary.AppendUvarint(b, uint64(k.distance))
	}
	return packExpr(b, k.value)
}

// unpackClaim reads what pack packed.
func unpackClaim(b *bin.Reader) (k Claim) {
	k.Parameter, k.by, k.controls = int(b.ULEB()), by(b.U8()), int(b.ULEB())
	if k.by == handedOn {
		k.inner = int32(b.ULEB())
		k.name = string(b.Bytes(b.ULEB()))
	} else {
		k.at, k.size, k.register, k.distance = b.ULEB(), b.U8(), uint16(b.ULEB()), int64(b.ULEB())
	}
	k.value = unpackExpr(b, 0)
	b.Bad = b.Bad || k.by >= bys
	return k
}

// packExpr appends an expression that writer has written, an operation before its operands.
func packExpr(b []byte, e *loc.Expr) []byte {
	b = append(b, byte(e.Op), e.Size)
	b = binary.AppendUvarint(b, e.K)
	switch operandsOf(e.Op) {
	case 1:
		b = packExpr(b, e.A)
	case 2:
		b = packExpr(packExpr(b, e.A), e.B)
	}
	return b
}

// maxDepth bounds how deep expressions are nested.
const maxDepth = 1 << 10

func unpackExpr(b *bin.Reader, depth int) *loc.Expr {
	e := &loc.Expr{Op: ops.Op(b.U8()), Size: b.U8(), K: b.ULEB()}
	n := operandsOf(e.Op)
	if n < 0 || depth > maxDepth || b.Bad {
		b.Bad = true
		return e
	}
	if sized := e.Op == ops.Deref || e.Op == ops.ZExt || e.Op == ops.SExt; sized && (e.Size == 0 || e.Size > 8) {
		b.Bad = true
	}
	if n > 0 {
		e.A = unpackExpr(b, depth+1)
	}
	if n > 1 {
		e.B = unpackExpr(b, depth+1)
	}
	return e
}

// operandsOf returns how many operands an operation has, or -1 for those that no witness needs.
func operandsOf(op ops.Op) int {
	switch op {
	case ops.Const, ops.Reg, ops.Addr:
		return 0
	case ops.Deref, ops.ZExt, ops.SExt, ops.Neg:
		return 1
	case ops.Add, ops.Sub, ops.Mul, ops.And, ops.Shl:
		return 2
	}
	return -1
}
