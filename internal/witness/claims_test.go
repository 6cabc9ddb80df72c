package witness

import (
	"reflect"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestClaims: what is said of parameters is the same when it is read again, and no part of it is taken for all.
func TestClaims(t *testing.T) {
	register := &loc.Expr{Op: ops.Reg, K: 5}
	member := &loc.Expr{Op: ops.Add, A: register, B: &loc.Expr{Op: ops.Const, K: ^uint64(15)}}
	said := []Claim{
		{value: register, at: 0xffffffff81000000, size: 4, controls: 27},
		{Parameter: 1, value: &loc.Expr{Op: ops.Addr, K: 0xffffffff82000000}, by: called, at: 0xffffffff81000010, size: 5, controls: 9},
		{Parameter: 2, value: &loc.Expr{Op: ops.Deref, Size: 8, A: member}, by: passed, at: 0xffffffff81000020, size: 5, register: 4, distance: -16, controls: 300},
		{Parameter: 3, value: &loc.Expr{Op: ops.SExt, Size: 4, A: register}, by: handedOn, controls: 12, inner: 7, name: "flags"},
	}
	for i := range said {
		packed := said[i].pack(nil)
		b := bin.Reader{D: packed}
		if got := unpackClaim(&b); b.Bad || b.P != len(packed) || !reflect.DeepEqual(got, said[i]) {
			t.Errorf("%+v is read as %+v", said[i], got)
		}
		for n := range packed {
			b := bin.Reader{D: packed[:n]}
			if unpackClaim(&b); !b.Bad {
				t.Errorf("%+v: %d of %d bytes are read", said[i], n, len(packed))
			}
		}
	}
	for _, e := range []loc.Expr{
		{Op: ops.Select, A: register, B: register, C: register}, {Op: ops.Deref, Size: 9, A: register}, {Op: 255},
	} {
		b := bin.Reader{D: (&Claim{value: &e}).pack(nil)}
		if unpackClaim(&b); !b.Bad {
			t.Errorf("%+v is read", e)
		}
	}
}
