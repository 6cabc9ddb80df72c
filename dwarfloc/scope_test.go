package dwarfloc

import (
	"fmt"
	"strings"
	"testing"
)

// paramText prints a parameter in one line.
func paramText(img *Image, v *Variable) string {
	s := fmt.Sprintf("%s %s (%s) ", v.Role, v.Name, v.Type)
	if v.Loc.Kind != KindNone {
		s += fmt.Sprintf("%s %s, %s", v.Loc.Kind, v.Loc.Text(img.Arch()), v.Loc.Rule)
	}
	return strings.TrimSpace(s + " " + v.Reason.String())
}

// TestParams: each class of value that a parameter's place can have, and how
// damage in one parameter leaves the others alone.
func TestParams(t *testing.T) {
	s32 := &die{tag: tagBaseType, attrs: []attribute{{attrName_, formString, "int"}, {attrByteSize, formData1, 4}, {attrEncoding, formData1, encSigned}}}
	param := func(name string, attrs ...attribute) *die {
		return &die{tag: tagFormalParameter, attrs: append([]attribute{{attrName_, formString, name}, {attrType, formRef4, s32}}, attrs...)}
	}
	list := cat(lleOffsetPair, 0, 8, loc5(4), lleEndOfList, lleEndOfList)
	f := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "f"}, {attrLowpc, formAddr, uint64(textAddr)}, {attrHighpc, formData1, 64}}, kids: []*die{
		param("whole", attribute{attrLocation, formExprloc, cat(xReg0 + 5)}),
		param("list", attribute{attrLocation, formSecOffset, 0}),
		param("empty_list", attribute{attrLocation, formSecOffset, 6}),
		param("no_place"),
		param("sdata", attribute{attrConstValue, formSdata, -3}),
		param("data2", attribute{attrConstValue, formData2, 0xfffe}),
		param("implicit", attribute{attrConstValue, formImplicitConst, -1}),
		param("block", attribute{attrConstValue, formBlock1, []byte{1, 2, 3}}),
		param("data16", attribute{attrConstValue, formData16, make([]byte, 16)}),
		param("text", attribute{attrConstValue, formString, "hi"}),
		param("constant_first", attribute{attrLocation, formExprloc, cat(xReg0)}, attribute{attrConstValue, formData1, 9}),
		param("damaged_expression", attribute{attrLocation, formExprloc, cat(xPlus)}),
		param("damaged_list", attribute{attrLocation, formSecOffset, 0x1000}),
		param("damaged_type", attribute{attrLocation, formExprloc, cat(xReg0)}),
		{tag: tagVariable, attrs: []attribute{{attrName_, formString, "local"}}},
		param("last", attribute{attrLocation, formExprloc, cat(xReg0 + 2)}),
	}}
	f.kids[13].attrs[1].v = 0xffff
	img := testImage(t, []cu{{version: 5, root: unitRoot(s32, f)}}, debugSection(".debug_loclists", list))
	params, err := sitesOf(t, img, "f", 1)[0].Params()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%#x", f.kids[11].off)
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
	s32 := &die{tag: tagBaseType, attrs: []attribute{{attrName_, formString, "int"}, {attrByteSize, formData1, 4}, {attrEncoding, formData1, encSigned}}}
	a := &die{tag: tagFormalParameter, attrs: []attribute{{attrName_, formString, "a"}, {attrType, formRef4, s32}}}
	b := &die{tag: tagFormalParameter, attrs: []attribute{{attrName_, formString, "b"}, {attrType, formRef4, s32}}}
	c := &die{tag: tagFormalParameter, attrs: []attribute{{attrName_, formString, "c"}, {attrType, formRef4, s32}}}
	inner := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "inner"}, {attrInline, formData1, 1}}, kids: []*die{a, b, c}}
	at := func(of *die, reg int) *die {
		return &die{tag: tagFormalParameter, attrs: []attribute{{attrAbstractOrigin, formRefAddr, of}, {attrLocation, formExprloc, cat(xReg0 + reg)}}}
	}
	lost := &die{tag: tagVariable, attrs: []attribute{{attrAbstractOrigin, formRefAddr, b}, {attrLocation, formExprloc, cat(xGNUParameterRef, le32(0))}}}
	inlined := &die{tag: tagInlinedSubroutine, attrs: []attribute{{attrAbstractOrigin, formRefAddr, inner}, {attrLowpc, formAddr, uint64(textAddr + 8)}}, kids: []*die{at(c, 1), at(a, 0)}}
	outer := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "outer"}, {attrLowpc, formAddr, uint64(textAddr)}, {attrHighpc, formData1, 64}}, kids: []*die{inlined}}
	clone := &die{tag: tagSubprogram, attrs: []attribute{{attrAbstractOrigin, formRefAddr, inner}, {attrLowpc, formAddr, uint64(textAddr + 0x80)}, {attrHighpc, formData1, 64}}, kids: []*die{at(c, 1), lost}}
	img := testImage(t, []cu{{version: 5, root: unitRoot(s32, inner)}, {version: 4, root: unitRoot(outer, clone)}})
	want := [][]string{
		{"parameter a (int) register %rax, whole-scope", "parameter b (int)  optimized-out", "parameter c (int) register %rdx, whole-scope"},
		{"parameter a (int)  optimized-out", "parameter b (int)  parameter-ref", "parameter c (int) register %rdx, whole-scope"},
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

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range ReasonCodes() {
		if c.String() == "" || c.Text() == "" || seen[c.String()] || strings.ContainsAny(c.String(), " _") {
			t.Errorf("reason %d: name %q, text %q", c, c, c.Text())
		}
		seen[c.String()] = true
	}
	if got := (Reason{Unsupported, "DW_OP_call2"}).String(); got != "unsupported-operation: DW_OP_call2" {
		t.Error(got)
	}
	if got := noSuchVariable("x", []string{"y", "z"}).String(); got != `no-such-variable: "x"; in scope: y, z` {
		t.Error(got)
	}
	for r := RuleNone; r <= RuleDefault; r++ {
		if r.String() == "" || r.Text() == "" {
			t.Errorf("rule %d has no name or text", r)
		}
	}
	for _, k := range Kinds() {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

// TestSlotAtEntry: what is relative to the stack pointer for a whole scope holds at
// the function's first instruction only when the frame never changes.
func TestSlotAtEntry(t *testing.T) {
	fbreg := cat(xFbreg, sleb(16))
	breg := cat(xBreg0+rsp, sleb(16))
	for _, tt := range []struct {
		name  string
		frame []byte // call frame instructions behind rsp+8
		want  string
	}{
		{"steady", nil, "memory [%rsp+16], whole-scope"},
		{"unsteady", cat(0x44, 0x0e, 32), "not-at-site: it is relative to a stack frame that the function has not set up yet"},
	} {
		f := &die{tag: tagSubprogram, attrs: []attribute{{attrName_, formString, "f"}, {attrLowpc, formAddr, uint64(textAddr)},
			{attrHighpc, formData1, 64}, {attrFrameBase, formExprloc, cat(xReg0 + rsp)}}}
		for _, e := range [][]byte{fbreg, breg, cat(xReg0 + rdi)} { // the register tells that the code is optimised
			f.kids = append(f.kids, &die{tag: tagFormalParameter, attrs: []attribute{{attrName_, formString, "p"}, {attrLocation, formExprloc, e}}})
		}
		frame := cat(frameEntry(le32(0xffffffff), 1, "", 1, sleb(-8), 16, 0x0c, 7, 8), frameEntry(le32(0), le64(textAddr), le64(64), tt.frame))
		img := testImage(t, []cu{{version: 5, root: unitRoot(f)}}, debugSection(".debug_frame", frame))
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
