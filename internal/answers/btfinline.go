package answers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// A section .BTF.inline, as it was merged in bpf-next in September 2026: types that build on those in .BTF say where inlined
// instances begin, and where their parameters are there. It has neither views nor arithmetic, and neither call chains nor
// the other ways into a body.

const inlineSection = ".BTF.inline"

// readInline reads the section, if an image has one.
func (t *BTF) readInline(f *image.File) error {
	d, err := f.SectionContents(inlineSection)
	if err != nil || d == nil {
		return err
	}
	t.btf.Name = inlineSection
	t.btf.Types, err = btf.New(d, t.own)
	return err
}

// findInline appends the inlined instances of functions that m selects.
func (t *BTF) findInline(out []btfSite, m Matcher) ([]btfSite, error) {
	if t.btf.Types == t.own {
		return out, nil
	}
	names := make(map[btf.ID]string)
	var failed error
	err := t.btf.Each(func(sec *btf.Type) bool {
		if sec.Kind != btf.KindLocSec {
			return true
		}
		var begin uint64
		if begin, failed = t.sectionOf(sec); failed != nil {
			return false
		}
		sec.Places(func(p btf.Place) bool {
			name, known := names[p.Func]
			if !known {
				var f btf.Type
				if f, failed = t.btf.Type(p.Func); failed == nil && f.Kind != btf.KindFunc {
					failed = &btf.Error{Msg: fmt.Sprintf("an inlined function is type %d, which is no function", p.Func)}
				}
				if failed == nil {
					name, failed = f.Name()
				}
				if failed != nil {
					return false
				}
				names[p.Func] = name
			}
			if m != nil && !m.Match(name) {
				return true
			}
			x := btfSite{function: p.Func, kernelSymbol: kernelSymbol{addr: begin + uint64(p.Offset)}, name: name, inline: true, params: p.Params}
			if sym := t.file.SymbolAt(x.addr, ""); sym != nil {
				x.kernelSymbol.name, x.offset = sym.Name, x.addr-sym.Addr
			}
			out = append(out, x)
			return true
		})
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return out, err
}

// sectionOf returns where the section begins that the instances in a KindLocSec are in: "inline.text" is about .text, as is "inline", and
// others name the section itself.
func (t *BTF) sectionOf(sec *btf.Type) (uint64, error) {
	name, err := sec.Name()
	if err != nil {
		return 0, err
	}
	of := strings.TrimPrefix(name, "inline")
	if name == "inline" {
		of = ".text"
	}
	for _, s := range t.file.Sections() {
		if s.Name == of && s.Exec {
			return s.Addr, nil
		}
	}
	return 0, &btf.Error{Msg: fmt.Sprintf("it tells of instances in the section %q, and no section of instructions has that name", of)}
}

// placed returns the parameters of an inlined instance.
func (v btfValues) placed(declared []btf.Param) (out []Value, err error) {
	b := v.t.btf
	p, err := b.Type(v.s.params)
	var ids []btf.ID
	switch {
	case err != nil:
	case p.Kind == btf.KindLocProto:
		ids = p.ParamIDs()
	case v.s.params != 0:
		err = &btf.Error{Msg: fmt.Sprintf("what says where the parameters of %s are is type %d, which is of another kind", v.s.name, v.s.params)}
	}
	if err != nil {
		return nil, b.Error(err)
	}
	for i, d := range declared {
		if d.Type == 0 && d.Name == "" {
			break
		}
		x := Value{Name: d.Name, Entries: 1, Reason: loc.Reason{Code: reasons.OptimizedOut}}
		if x.Type, err = v.t.types.At(d.Type); err != nil {
			return nil, err
		}
		if i < len(ids) && ids[i] != 0 {
			at, err := b.Type(ids[i])
			if err == nil && at.Kind != btf.KindLocParam {
				err = &btf.Error{Msg: fmt.Sprintf("where a parameter of %s is is type %d, which is of another kind", v.s.name, ids[i])}
			}
			if err != nil {
				return nil, b.Error(err)
			}
			x.Loc, x.Reason = v.t.btfLocation(&at)
			if x.Reason.Code != reasons.None {
				x.Loc = loc.Location{}
			} else if x.LowBit, err = LowBit(&x.Loc, x.Type); err != nil {
				return nil, err
			} else {
				x.Loc.Rule = rule.BTFInline
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// btfLocation returns the location that a KindLocParam says.
func (t *BTF) btfLocation(at *btf.Type) (loc.Location, loc.Reason) {
	flags, values := at.Location()
	number := func(from int, signed bool) uint64 {
		switch {
		case len(values) >= from+2:
			return uint64(values[from+1])<<32 | uint64(values[from])
		case signed:
			return uint64(int64(int32(values[from])))
		}
		return uint64(values[from])
	}
	strange := loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf("a location with flags %#x and %d values", flags, len(values))}
	switch place := flags &^ btf.LocSigned; {
	case len(values) == 0 || len(values) > 3:
	case place == btf.LocConst && len(values) <= 2:
		return loc.Location{Kind: loc.KindConstant, Expr: &loc.Expr{Op: ops.Const, K: number(0, flags&btf.LocSigned != 0)}}, loc.Reason{}
	case place&btf.LocReg == 0:
	case slices.Contains(values[:1], btf.FrameBase):
		return loc.Location{}, loc.Reason{Code: reasons.NoFrameInfo, Detail: "BTF does not say where the frame is"}
	case place == btf.LocReg && len(values) == 1:
		return loc.Location{Kind: loc.KindRegister, Expr: &loc.Expr{Op: ops.Reg, K: uint64(values[0])}}, eval.CheckRegister(t.machine.Arch, uint64(values[0]))
	case place == btf.LocReg && len(values) == 2:
		return t.btfPieces(int64(at.Size), values)
	case place == btf.LocReg|btf.LocDeref && len(values) == 1:
		return loc.Location{Kind: loc.KindMemory, Expr: &loc.Expr{Op: ops.Reg, K: uint64(values[0])}}, eval.CheckRegister(t.machine.Arch, uint64(values[0]))
	case place&^btf.LocDeref == btf.LocReg|btf.LocOffset && len(values) >= 2:
		l := loc.Location{Kind: loc.KindValue, Expr: abi.Register(uint16(values[0]), number(1, true))}
		if place&btf.LocDeref != 0 {
			l.Kind = loc.KindMemory
		}
		return l, eval.CheckRegister(t.machine.Arch, uint64(values[0]))
	}
	return loc.Location{}, strange
}

// btfPieces returns a location in several registers.
func (t *BTF) btfPieces(left int64, registers []uint32) (l loc.Location, r loc.Reason) {
	l.Kind = loc.KindPieces
	for _, n := range registers {
		if r = eval.CheckRegister(t.machine.Arch, uint64(n)); r.Code != reasons.None {
			return loc.Location{}, r
		}
		bytes := min(left, int64(t.machine.WordSize))
		if bytes <= 0 {
			return loc.Location{}, loc.Reason{Code: reasons.Unsupported, Detail: "more registers than the parameter has bytes for"}
		}
		left -= bytes
		l.Pieces = append(l.Pieces, loc.Piece{BitSize: 8 * uint64(bytes), Loc: loc.Location{Kind: loc.KindRegister, Expr: &loc.Expr{Op: ops.Reg, K: uint64(n)}}})
	}
	return l, loc.Reason{}
}
