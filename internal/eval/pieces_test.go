package eval

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestLostPieces: pieces that cannot be read do not spoil the others.
func TestLostPieces(t *testing.T) {
	const (
		rax, rdx, xmm0 = 0x50, 0x51, 0x61
		stackValue     = 0x9f
		contradictory  = "contradictory: a shift by -4 bits"
	)
	piece := func(n byte) []byte { return []byte{0x93, n} }
	bits := func(n byte) []byte { return []byte{0x9d, n, 0} }
	shift := []byte{0x70, 0, 0x09, 0xfc, 0x24, stackValue}        // %rax << -4
	branch := []byte{0x70, 0, 0x28, 1, 0, 0x30, 0x31, stackValue} // DW_OP_bra
	for _, tt := range []struct {
		name       string
		expr       []byte
		text       string
		whole      string
		off, size  uint64 // of a member, in bits
		member     string
		bitField   string
		fieldFirst uint64 // of a bit-field with 4 bits
	}{
		{"the first is in a vector register", dwarftest.Cat(xmm0, piece(8), rax, piece(8)),
			"{?:8, %rax:8}", "vector-register: %xmm0", 64, 64, "%rax", "u8(%rax) & 15", 64},
		{"its member", dwarftest.Cat(xmm0, piece(8), rax, piece(8)),
			"{?:8, %rax:8}", "vector-register: %xmm0", 0, 64, "vector-register: %xmm0", "vector-register: %xmm0", 0},
		{"a member that is partly in it", dwarftest.Cat(rax, piece(4), xmm0, piece(4), rdx, piece(8)),
			"{%rax:4, ?:4, %rdx:8}", "vector-register: %xmm0", 0, 64, "vector-register: %xmm0", "u8(%rax >>u 8) & 15", 8},
		{"all", dwarftest.Cat(xmm0, piece(8), xmm0+1, piece(8)),
			"", "vector-register: %xmm0", 0, 64, "", "", 0},
		{"all, or optimized away", dwarftest.Cat(piece(8), xmm0, piece(8)),
			"", "vector-register: %xmm0", 0, 64, "", "", 0},
		{"another is optimized away", dwarftest.Cat(piece(4), rax, piece(4), shift, piece(8)),
			"{?:4, %rax:4, ?:8}", contradictory, 0, 32, "missing-piece", "u8(%rax) & 15", 32},
		{"a bit-field beside it in the same byte", dwarftest.Cat(rax, bits(4), shift, bits(4), rdx, bits(24)),
			"{%rax:4b, ?:4b, %rdx:3}", contradictory, 8, 24, "u24(%rdx)", "(%rax & 15) & 15", 0},
		{"entry value", dwarftest.Cat(0xa3, 1, rax, stackValue, piece(8), rax, piece(8)),
			"{?:8, %rax:8}", "entry-value-only", 64, 64, "%rax", "u8(%rax) & 15", 64},
		{"an unknown operation", dwarftest.Cat(0xe1, piece(8), rax, piece(8)),
			"", "unsupported-operation: 0xe1", 0, 64, "", "", 0},
		{"a branch", dwarftest.Cat(branch, piece(8), rax, piece(8)),
			"", "unsupported-operation: a branch in a location with pieces", 0, 64, "", "", 0},
		{"no piece follows", dwarftest.Cat(rax, piece(8), shift),
			"", contradictory, 0, 64, "", "", 0},
	} {
		ev := Evaluator{Arch: arch.ByName("amd64"), Encoding: Encoding{AddressSize: 8, OffsetSize: 4}, Context: notAtEntry{}}
		var l loc.Location
		r, err := ev.Evaluate(tt.expr, &l)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if r.Code == reasons.None {
			r = MissingPart(&l)
		}
		text := func(l loc.Location, r loc.Reason) string {
			if r.Code != reasons.None {
				return r.String()
			}
			return l.Text(ev.Arch)
		}
		if l.Kind == loc.KindNone {
			if tt.text != "" || r.String() != tt.whole {
				t.Errorf("%s: %v, want %q %v", tt.name, r, tt.text, tt.whole)
			}
			continue
		}
		if got := l.Text(ev.Arch); got != tt.text || r.String() != tt.whole {
			t.Errorf("%s: %s, %v, want %s, %v", tt.name, got, r, tt.text, tt.whole)
		}
		if got := text(ev.Part(&l, tt.off, tt.size)); got != tt.member {
			t.Errorf("%s: a member is %s, want %s", tt.name, got, tt.member)
		}
		e, r := ev.BitField(&l, tt.fieldFirst, 4, false)
		got := r.String()
		if r.Code == reasons.None {
			got = e.Text(ev.Arch)
		}
		if got != tt.bitField {
			t.Errorf("%s: a bit-field is %s, want %s", tt.name, got, tt.bitField)
		}
	}
}

// notAtEntry is a place inside of a function.
type notAtEntry struct{ Context }

func (notAtEntry) AtEntry() (bool, error) { return false, nil }

func (notAtEntry) Base(uint64) (*loc.Expr, loc.Reason, error) { return nil, loc.Reason{}, nil }

func (notAtEntry) EntryValue([]byte) (*loc.Expr, loc.Reason, error) {
	return nil, loc.Reason{Code: reasons.EntryValueOnly}, nil
}

func (notAtEntry) ParameterRef(uint64) (*loc.Expr, loc.Reason, error) {
	return nil, loc.Reason{Code: reasons.ParameterRef}, nil
}
