package dwarfloc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/loc"
)

// paramText prints a parameter in one line.
func paramText(img *Image, v *Variable) string {
	s := fmt.Sprintf("%s %s (%s) ", v.Role, v.Name, v.Type)
	if v.Loc.Kind != loc.KindNone {
		s += fmt.Sprintf("%s %s, %s", v.Loc.Kind, v.Loc.Text(img.Arch()), v.Loc.Rule)
	}
	return strings.TrimSpace(s + " " + v.Reason.String())
}

// TestParams: each class of value that a parameter's place can have, and how
// damage in one parameter leaves the others alone.
func TestParams(t *testing.T) {
	s32 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "int"), dwarftest.At(dw.AttrByteSize, dw.FormData1, 4), dwarftest.At(dw.AttrEncoding, dw.FormData1, dw.EncSigned)}}
	param := func(name string, attrs ...dwarftest.Attr) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: append([]dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, name), dwarftest.At(dw.AttrType, dw.FormRef4, s32)}, attrs...)}
	}
	list := dwarftest.Cat(dw.LleOffsetPair, 0, 8, loc5(4), dw.LleEndOfList, dw.LleEndOfList)
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64)}, Kids: []*dwarftest.DIE{
		param("whole", dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xReg0+5))),
		param("list", dwarftest.At(dw.AttrLocation, dw.FormSecOffset, 0)),
		param("empty_list", dwarftest.At(dw.AttrLocation, dw.FormSecOffset, 6)),
		param("no_place"),
		param("sdata", dwarftest.At(dw.AttrConstValue, dw.FormSdata, -3)),
		param("data2", dwarftest.At(dw.AttrConstValue, dw.FormData2, 0xfffe)),
		param("implicit", dwarftest.At(dw.AttrConstValue, dw.FormImplicitConst, -1)),
		param("block", dwarftest.At(dw.AttrConstValue, dw.FormBlock1, []byte{1, 2, 3})),
		param("data16", dwarftest.At(dw.AttrConstValue, dw.FormData16, make([]byte, 16))),
		param("text", dwarftest.At(dw.AttrConstValue, dw.FormString, "hi")),
		param("constant_first", dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xReg0)), dwarftest.At(dw.AttrConstValue, dw.FormData1, 9)),
		param("damaged_expression", dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xPlus))),
		param("damaged_list", dwarftest.At(dw.AttrLocation, dw.FormSecOffset, 0x1000)),
		param("damaged_type", dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xReg0))),
		{Tag: dw.TagVariable, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "local")}},
		param("last", dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xReg0+2))),
	}}
	f.Kids[13].Attrs[1].V = 0xffff
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(s32, f)}}, dwarftest.Debug(".debug_loclists", list))
	params, err := sitesOf(t, img, "f", 1)[0].Params()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%#x", f.Kids[11].Off)
	want := []string{
		"parameter whole (int) register %rdi, whole-scope",
		"parameter list (int) register %rsi, address",
		"parameter empty_list (int)  optimized-out: its location list is empty",
		"parameter no_place (int)  optimized-out",
		"parameter sdata (int) constant -3, constant",
		"parameter data2 (int) constant 65534, constant",
		"parameter implicit (int) constant -1, constant",
		"parameter block (int) constant 0x30201, constant",
		"parameter data16 (int) bytes bytes(00000000000000000000000000000000), constant",
		"parameter text (int) bytes bytes(686900), constant",
		"parameter constant_first (int) constant 9, constant",
		"parameter damaged_expression (int)  damaged: test: .debug_info+" + at + ": invalid expression: the stack is empty",
		"parameter damaged_list (int)  damaged: test: .debug_loclists+0x1000: the location list does not end",
		"parameter damaged_type (void)  damaged: test: .debug_info+0x0: reference to 0xffff is outside its unit",
		"parameter last (int) register %rcx, whole-scope",
	}
	if len(params) != len(want) {
		t.Fatalf("got %d parameters, want %d", len(params), len(want))
	}
	for i, v := range params {
		if got := paramText(img, v); got != want[i] {
			t.Errorf("got  %q\nwant %q", got, want[i])
		}
	}
}

// TestParamsOfInstances: an inlined instance has the parameters of its abstract
// function in their order, those without an entry of their own as optimized out,
// names and types through the origin, also in another unit.
func TestParamsOfInstances(t *testing.T) {
	s32 := &dwarftest.DIE{Tag: dw.TagBaseType, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "int"), dwarftest.At(dw.AttrByteSize, dw.FormData1, 4), dwarftest.At(dw.AttrEncoding, dw.FormData1, dw.EncSigned)}}
	a := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "a"), dwarftest.At(dw.AttrType, dw.FormRef4, s32)}}
	b := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "b"), dwarftest.At(dw.AttrType, dw.FormRef4, s32)}}
	c := &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "c"), dwarftest.At(dw.AttrType, dw.FormRef4, s32)}}
	inner := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "inner"), dwarftest.At(dw.AttrInline, dw.FormData1, 1)}, Kids: []*dwarftest.DIE{a, b, c}}
	at := func(of *dwarftest.DIE, reg int) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRefAddr, of), dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xReg0+reg))}}
	}
	lost := &dwarftest.DIE{Tag: dw.TagVariable, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRefAddr, b), dwarftest.At(dw.AttrLocation, dw.FormExprloc, dwarftest.Cat(xGNUParameterRef, dwarftest.LE32(0)))}}
	inlined := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRefAddr, inner), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+8))}, Kids: []*dwarftest.DIE{at(c, 1), at(a, 0)}}
	outer := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "outer"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64)}, Kids: []*dwarftest.DIE{inlined}}
	clone := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrAbstractOrigin, dw.FormRefAddr, inner), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr+0x80)), dwarftest.At(dw.AttrHighpc, dw.FormData1, 64)}, Kids: []*dwarftest.DIE{at(c, 1), lost}}
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(s32, inner)}, {Version: 4, Root: dwarftest.Root(outer, clone)}})
	want := [][]string{
		{"parameter a (int) register %rax, whole-scope", "parameter b (int)  optimized-out", "parameter c (int) register %rdx, whole-scope"},
		{"parameter a (int)  optimized-out", "parameter b (int)  parameter-ref: no call of it is known", "parameter c (int) register %rdx, whole-scope"},
	}
	for i, s := range sitesOf(t, img, "inner", 2) {
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range params {
			got = append(got, paramText(img, v))
		}
		if fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("%s:\ngot  %q\nwant %q", s, got, want[i])
		}
	}
}

// TestSlotAtEntry: what is relative to the stack pointer for a whole scope holds at
// the function's first instruction only when the frame never changes.
func TestSlotAtEntry(t *testing.T) {
	fbreg := dwarftest.Cat(xFbreg, dwarftest.SLEB(16))
	breg := dwarftest.Cat(xBreg0+rsp, dwarftest.SLEB(16))
	for _, tt := range []struct {
		name  string
		frame []byte // call frame instructions after rsp+8
		want  string
	}{
		{"steady", nil, "memory [%rsp+16], whole-scope"},
		{"unsteady", dwarftest.Cat(0x44, 0x0e, 32), "not-at-site: it is relative to a stack frame that the function has not set up yet"},
	} {
		f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "f"), dwarftest.At(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)),
			dwarftest.At(dw.AttrHighpc, dw.FormData1, 64), dwarftest.At(dw.AttrFrameBase, dw.FormExprloc, dwarftest.Cat(xReg0+rsp))}}
		for _, e := range [][]byte{fbreg, breg, dwarftest.Cat(xReg0 + rdi)} { // the register tells that the code is optimised
			f.Kids = append(f.Kids, &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormString, "p"), dwarftest.At(dw.AttrLocation, dw.FormExprloc, e)}})
		}
		frame := dwarftest.Cat(dwarftest.FrameEntry(dwarftest.LE32(0xffffffff), 1, "", 1, dwarftest.SLEB(-8), 16, 0x0c, 7, 8), dwarftest.FrameEntry(dwarftest.LE32(0), dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(64), tt.frame))
		img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(f)}}, dwarftest.Debug(".debug_frame", frame))
		s := sitesOf(t, img, "f", 1)[0]
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range params[:2] {
			if got := paramText(img, v); !strings.HasSuffix(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
		if got := paramText(img, params[2]); s.AfterPrologue || got != "parameter p (void) register %rdi, whole-scope" {
			t.Errorf("%s: %s, after the prologue: %v", tt.name, got, s.AfterPrologue)
		}
	}
}
