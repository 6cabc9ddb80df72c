package dwarfloc

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestBranchesFor: LLVM merges the end of a body with that of the caller, and what both call is in it two times: the branch is the body's, and the comparison in front of it, at the same
// place of the source, is the caller's. There is no run of the body. If the body compares itself, there is.
func TestBranchesFor(t *testing.T) {
	at := dwarftest.At
	leaf := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "leaf"), at(dw.AttrInline, dw.FormData1, 1), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 10),
	}}
	instance := func(line int, lo, hi uint64) *dwarftest.DIE {
		return &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, leaf), at(dw.AttrLowpc, dw.FormAddr, dwarftest.TextAddr+lo), at(dw.AttrHighpc, dw.FormData8, hi-lo),
			at(dw.AttrCallFile, dw.FormData1, 1), at(dw.AttrCallLine, dw.FormData1, line),
		}}
	}
	// test %esi,%esi; je 11; 4: inner: incl (%rdi); 6: mov %edx,%eax; nop; jmp 13; 11: mov %ecx,%eax; 13: cmp %edx,%eax; 15: jge 20; 17: mov %eax,(%rdi); 19: ret; 20: xor %eax,%eax; ret
	const code = "85f6" + "7407" + "ff07" + "89d0" + "90" + "eb02" + "89c8" + "39d0" + "7d03" + "8907" + "c3" + "31c0" + "c3"
	rows := []placed{{0, 20}, {4, 2}, {6, 21}, {11, 22}, {13, 12}, {17, 23}}
	for _, tt := range []struct {
		name         string
		first        uint64 // of the body's part of the test
		beside, want []uint64
	}{
		{"a comparison of the caller's", 15, []uint64{13, 15}, []uint64{4}},
		{"a comparison of the body's", 13, nil, []uint64{4, 13}},
	} {
		var beside []*dwarftest.DIE
		if tt.beside != nil {
			beside = append(beside, instance(23, tt.beside[0], tt.beside[1]))
		}
		img := imageBeside(t, "clang version 22.0.0", code, rows, []uint64{4, 6, tt.first, 17}, beside, instance(3, tt.first, 17))
		got := waysIn(t, img, tt.name)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: ways in at %d, want %d", tt.name, got, tt.want)
		}
	}
}
