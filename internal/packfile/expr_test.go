package packfile

import (
	"bytes"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestOperations: what a writer takes of all operations a reader reads, and nothing else.
func TestOperations(t *testing.T) {
	for op := loc.Op(0); op <= ops.Clz+1; op++ {
		one := func() *loc.Expr { return &loc.Expr{Op: ops.Const, K: 1} }
		e := &loc.Expr{Op: op}
		for i := range operands(op) {
			*[]**loc.Expr{&e.A, &e.B, &e.C}[i] = one()
		}
		switch op {
		case ops.Reg, ops.Addr, ops.Const:
			e.K = 1
		case ops.Deref, ops.ZExt, ops.SExt:
			e.Size = 4
		case ops.Caller:
			e.A, e.B = one(), &loc.Expr{Op: ops.Arm, K: 8, A: one()}
		}
		written, err := appendExpr(nil, e)
		of := written
		if err != nil {
			of = append([]byte{byte(op)}, bytes.Repeat([]byte{byte(ops.Const), 2}, 3)...)
		}
		r := groupReader{Reader: bin.Reader{D: of}}
		x := valueReader{groupReader: &r}
		got := x.expr(0)
		if x.Bad != (err != nil) {
			t.Errorf("%v: it is written: %v, and read: %v", op, err, !x.Bad)
		}
		if err != nil || x.Bad {
			continue
		}
		if again, err := appendExpr(nil, got); err != nil || !bytes.Equal(again, written) || x.P != len(written) {
			t.Errorf("%v: % x is read, and written as % x: %v", op, written, again, err)
		}
	}
}
