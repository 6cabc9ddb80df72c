package dwarfloc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/arithmetic"
	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/convention"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/exprtest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// ComparePassing compares all functions of an image.
func ComparePassing(t *testing.T, path string, functions int) {
	t.Helper()
	img, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, s := range sites {
		if strings.HasPrefix(s.Function, "g") {
			verdict, text := compareResult(t, s)
			counts["result: "+verdict]++
			if verdict == "differ" {
				t.Errorf("%s: %s", s.Function, text)
			}
			continue
		}
		if s.Kind != SiteEntry || s.here().Addr != s.spot.Start() {
			counts["entry after a prologue"]++
			continue
		}
		e, err := s.u.Entry(s.DIE)
		if err != nil {
			t.Fatal(err)
		}
		ev := resolve.At(s.at())
		stackPointer := loc.Location{Kind: loc.KindRegister, Expr: abi.Register(img.Arch().SP, 0)}
		unknown := false
		if err := img.r.EachParam(e, func(x *entries.Var) (bool, error) {
			if err := x.Complete(); err != nil {
				return false, err
			}
			var v resolve.Answer
			if v.Type, err = x.U.TypeOf(x.Type); err != nil {
				return false, err
			}
			var c entries.Chosen
			if err := ev.FromDWARF(&v, x, &c); err != nil {
				return false, err
			}
			l, r, k, err := new(convention.Passed).Of(s.at(), x)
			if err != nil {
				return false, err
			}
			if k == convention.Changed {
				unknown = true
			}
			verdict := verdictOf(img, &v, &l, r, unknown)
			later := ""
			switch variadic, err := entries.IsVariadic(e); {
			case err != nil:
				t.Fatal(err)
			case v.Loc.Rule == rule.Whole && resolve.SetFirst(s.at(), &v.Loc):
				later = "not compared: in a register that the function sets first"
			case variadic && v.Loc.Kind == loc.KindPieces && arithmetic.SameRegister(&v.Loc, &stackPointer):
				later = "not compared: on the stack as it is later" // clang
			}
			if strings.HasPrefix(verdict, "differ") && later != "" {
				// The answer is then the convention's.
				verdict = later
				if got, err := s.Lookup(x.U.Text(x.Name)); err != nil || got.Loc.Rule != rule.ABI || !arithmetic.EqualLocation(&got.Loc, &l) {
					verdict = "differ: and that is the answer"
				}
			}
			counts[verdict]++
			if strings.HasPrefix(verdict, "differ") {
				t.Errorf("%s %s %v: the convention's %s %v, DWARF's %s %v", s.Function, x.U.Text(x.Name), v.Type, l.Text(img.Arch()), r, v.Loc.Text(img.Arch()), v.Reason)
			}
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	var text []string
	for k, n := range counts {
		text = append(text, fmt.Sprintf("%6d %s", n, k))
	}
	slices.Sort(text)
	t.Logf("%s", strings.Join(text, "\n"))
	if len(img.Arch().Args) > 0 && counts["equal"] < functions/2 || counts["result: equal"]+counts["result: equal, in vector registers"] < functions/10 {
		t.Error("too few are equal")
	}
}

// compareResult compares the result of the one call in a function with the variable that gets it, right after the call.
func compareResult(t *testing.T, s *Site) (verdict, text string) {
	t.Helper()
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		t.Fatal(err)
	}
	var after uint64
	if err := e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagCallSite {
			return true, nil
		}
		return true, c.Attrs(func(a dw.Attr, v dw.Value) {
			if addr, err := c.Unit.Address(v); a == dw.AttrCallReturnPC && err == nil {
				after = addr
			}
		})
	}); err != nil {
		t.Fatal(err)
	}
	if after == 0 {
		return "no call", ""
	}
	// Some compilers have the variable only after the next instruction, such as one that belongs to the call (ppc64el).
	var v *Variable
	late := uint64(0)
	for ; late <= 8; late += 2 {
		at, err := s.Image.SiteAt(context.Background(), after+late)
		if err != nil {
			continue
		}
		if v, err = at.Lookup("v"); err == nil && v.Reason.Code != reasons.NotAtSite {
			break
		}
	}
	if v == nil {
		return "no variable", ""
	}
	if part := v.Loc.Pieces; v.Loc.Kind == loc.KindMemory && v.Loc.Rule == rule.Whole || slices.ContainsFunc(part, func(p loc.Piece) bool { return p.Loc.Kind == loc.KindMemory }) {
		return "not compared: the variable is on the stack", ""
	}
	l, r, err := abi.Returned(v.Type, s.u.Lang, s.Image.machine()) // no e* has variable arguments
	if err != nil {
		t.Fatal(err)
	}
	verdict = verdictOf(s.Image, &resolve.Answer{Type: v.Type, Loc: v.Loc, Reason: v.Reason, Raw: v.raw}, &l, r, false)
	if verdict == "differ" && late > 0 {
		verdict = "not compared: the variable may have been moved"
	}
	return verdict, fmt.Sprintf("%v is at %s %v by the convention, at %s %v by DWARF", v.Type, l.Text(s.Image.Arch()), r, v.Loc.Text(s.Image.Arch()), v.Reason)
}

// verdictOf compares what the convention and the debug information say about one parameter.
func verdictOf(img *Image, v *resolve.Answer, l *loc.Location, r loc.Reason, unknown bool) string {
	switch {
	case unknown:
		return "not known"
	case v.Reason.Code == reasons.VectorRegister && r.Code == reasons.VectorRegister:
		return "equal, in vector registers"
	case r.Code == reasons.Unsupported:
		return "not known"
	case v.Loc.Kind == loc.KindNone:
		return "not compared: DWARF has " + v.Reason.Code.String()
	}
	equal, compared, err := equalPlaces(img, v.Type, &v.Loc, l)
	switch {
	case err != nil:
		return "differ: " + err.Error()
	case equal && compared, resolve.Truth(v, l):
		return "equal"
	case equal:
		return "not compared: DWARF has nothing that is used"
	case v.Loc.Rule != rule.View && v.Reason.Code == reasons.MissingPiece && v.Raw.U.Body.GNU():
		return "not compared: members as they are later" // GCC, where it has no views
	case img.file.BigEndian() && l.Kind == loc.KindMemory && slices.ContainsFunc(v.Loc.Pieces, func(p loc.Piece) bool { return p.Loc.Kind == loc.KindMemory && arithmetic.Equal(p.Loc.Expr, l.Expr) }):
		return "not compared: the low bytes of a slot" // clang has them at its beginning
	case l.Kind == loc.KindMemory && l.Expr.Op == ops.Deref && v.Loc.Kind == loc.KindMemory && arithmetic.Equal(l.Expr.A, v.Loc.Expr):
		return "equal, by address, of which DWARF has the slot" // clang
	case atHome(img, l, &v.Loc):
		return "equal, by the slot that the caller has for it" // GCC stores it there later
	case v.Loc.Rule == rule.Whole && v.Loc.Kind == loc.KindMemory && l.Kind == loc.KindMemory && aboveBy(&v.Loc, l, uint64(img.Arch().SP)) > 0:
		return "not compared: on the stack as it is later" // clang, with variable arguments
	case v.Loc.Rule == rule.Whole && l.Kind == loc.KindMemory && v.Loc.Kind == loc.KindMemory && v.Loc.Expr.Op == ops.Reg && img.Arch().SP != uint16(v.Loc.Expr.K):
		// GCC has a structure that is passed by address where the body keeps the address, as if that were so at the entry.
		return "not compared: by address, which DWARF has where it is later"
	}
	return "differ"
}

// aboveBy returns by how many bytes a slot of the stack is above another one.
func aboveBy(a, b *loc.Location, sp uint64) int64 {
	offset := func(e *loc.Expr) (int64, bool) {
		if e.Op == ops.Add && e.B.Op == ops.Const {
			return int64(e.B.K), e.A.Op == ops.Reg && e.A.K == sp
		}
		return 0, e.Op == ops.Reg && e.K == sp
	}
	one, ok := offset(a.Expr)
	two, too := offset(b.Expr)
	if !ok || !too {
		return 0
	}
	return one - two
}

// atHome reports whether a location is the slot on the stack that stands for the registers of another one.
func atHome(img *Image, l, at *loc.Location) bool {
	a := img.Arch()
	if l.Kind == loc.KindPieces {
		l = &l.Pieces[0].Loc
	}
	if !abi.Of(a).Slots || l.Kind != loc.KindRegister || at.Kind != loc.KindMemory {
		return false
	}
	slot := slices.Index(a.Args, uint16(l.Expr.K)) - len(a.Args)
	return arithmetic.Equal(at.Expr, abi.Register(a.SP, uint64(a.StackArgs+slot*a.WordSize)))
}

// equalPlaces reports whether two locations give a value of a type the same bytes, as far as both say what they are. Constants, which
// compilers write for bytes that are not used, are not compared, nor is padding.
func equalPlaces(img *Image, t *types.Type, a, b *loc.Location) (equal, compared bool, err error) {
	r, err := t.Resolve()
	if err != nil {
		return false, false, err
	}
	used := make([]bool, r.Size)
	for i := range used {
		pad, err := r.Padding(8*uint64(i), 8*uint64(i)+8)
		if err != nil {
			return false, false, err
		}
		used[i] = !pad
	}
	m := random{img.Arch().WordSize, img.file.BigEndian()}
	one, two := m.bytes(a, int(r.Size)), m.bytes(b, int(r.Size))
	for i := range used {
		if i >= len(one) || i >= len(two) || !used[i] || one[i] < 0 || two[i] < 0 {
			continue
		}
		if one[i] != two[i] {
			return false, true, nil
		}
		compared = true
	}
	return true, compared, nil
}

// random is a machine with a random byte at each address, and random registers.
type random struct {
	word int
	big  bool
}

func (m random) hash(v uint64) uint64 {
	v = (v + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

func (m random) short(v uint64) uint64 { return v << (64 - 8*m.word) >> (64 - 8*m.word) }

func (m random) Register(n uint64) (uint64, bool) { return m.short(m.hash(n)), true }
func (m random) Address(addr uint64) uint64       { return addr }

func (m random) Load(addr uint64, size int) (uint64, bool) {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(m.hash(m.short(addr + uint64(i))))
	}
	return bin.Uint(b, m.big), true
}

// bytes returns the bytes of an object, or -1 for those that are not known.
func (m random) bytes(l *loc.Location, size int) []int {
	out := slices.Repeat([]int{-1}, size)
	number := func(v uint64, n int) {
		for i := range min(n, 8, size) {
			shift := 8 * i
			if m.big {
				shift = 8 * (min(n, 8) - 1 - i)
			}
			out[i] = int(v >> shift & 0xff)
		}
	}
	switch l.Kind {
	case loc.KindRegister, loc.KindValue:
		if l.Expr.Op == ops.Const {
			break
		}
		if v, ok := exprtest.Value(m, l.Expr); ok {
			number(v, min(size, 8))
		}
	case loc.KindMemory:
		addr, ok := exprtest.Value(m, l.Expr)
		for i := range out {
			if v, _ := m.Load(addr+uint64(i), 1); ok {
				out[i] = int(v)
			}
		}
	case loc.KindPieces:
		at := 0
		for _, p := range l.Pieces {
			n := int(p.BitSize / 8)
			if at+n > size || p.BitSize%8 != 0 {
				break
			}
			if p.Reason.Code == reasons.None {
				copy(out[at:], m.bytes(&p.Loc, n))
			}
			at += n
		}
	}
	return out
}
