package dwarfloc

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestBorrowedPlaces: GCC gives an instruction that has no place that of the one before it in the code. Where execution only jumps there, that says neither that a run of a
// body begins there, nor that one has ended. And a body that has no instructions but those of what is inlined into it has lost its markers where those have.
func TestBorrowedPlaces(t *testing.T) {
	at := dwarftest.At
	leaf := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "leaf"), at(dw.AttrInline, dw.FormData1, 1), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 11),
	}}
	all := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
		at(dw.AttrAbstractOrigin, dw.FormRef4, leaf), at(dw.AttrRanges, dw.FormSecOffset, 0), at(dw.AttrCallFile, dw.FormData1, 1), at(dw.AttrCallLine, dw.FormData1, 2),
	}}
	// xor %ecx,%ecx; test %edi,%edi; je 26; mov %rsi,%rax; 9: mov (%rax),%edx; 11: inner: add $1,%edx; mov %edx,(%rax); 16: add $4,%rax; inc %ecx; cmp %edi,%ecx; jl 9; 26: ret
	const loop = "31c9" + "85ff" + "7414" + "4889f0" + "8b10" + "83c201" + "8910" + "4883c004" + "ffc1" + "39f9" + "7cef" + "c3"
	for _, tt := range []struct {
		name, code string
		rows       []placed
		in         []uint64
		kids       []*dwarftest.DIE
		want       []uint64
		again      []bool
	}{
		{
			"a load of the body's, with the place of what is before the loop",
			loop,
			[]placed{{0, 20}, {2, 21}, {9, -21}, {11, 2}, {16, 3}, {26, 22}},
			[]uint64{11, 26}, nil, []uint64{11}, []bool{true},
		},
		{
			"a load of the caller's loop",
			loop,
			[]placed{{0, 20}, {2, 21}, {9, 23}, {11, 2}, {16, 3}, {26, 22}},
			[]uint64{11, 26}, nil, []uint64{11}, []bool{false},
		},
		{
			"a return behind the end of the body",
			// test %rdi,%rdi; je 21; mov 8(%rdi),%eax; 8: inner: incl (%rdi); test $1,%al; jne 17; 14: incl (%rsi); ret; 17: inner: incl (%rdi); jmp 14; 21: ret
			"4885ff" + "7410" + "8b4708" + "ff07" + "a801" + "7503" + "ff06" + "c3" + "ff07" + "ebf9" + "c3",
			[]placed{{0, 20}, {5, 21}, {8, 2}, {14, 22}, {16, 23}, {17, 3}, {21, -3}},
			[]uint64{8, 14, 17, 22}, nil, []uint64{8, 21}, []bool{false, true},
		},
		{
			"a body that is another one's, without markers",
			// xor %ecx,%ecx; cmp $15,%esi; ja 14; mov %esi,(%rdx); 9: leaf: mov 8(%rdi),%eax; 12: jmp 20; 14: leaf: mov 8(%rdi),%eax; incl (%rdi); 19: nop; 20: cmp %eax,%ecx; ret
			"31c9" + "83fe0f" + "7707" + "8932" + "8b4708" + "eb06" + "8b4708" + "ff07" + "90" + "39c1" + "c3",
			[]placed{{0, 20}, {2, -21}, {7, -22}, {9, -12}, {12, -23}, {14, -12}, {17, -13}, {19, -24}},
			[]uint64{9, 12, 14, 19}, []*dwarftest.DIE{all}, []uint64{9, 14}, []bool{true, true},
		},
	} {
		img := imageBy(t, "GNU GIMPLE 12.2.0 -O2 -fltrans", tt.code, tt.rows, tt.in, tt.kids...)
		ways, err := img.waysOfSites(t.Context(), sitesOf(t, img, "inner", 1))
		if err != nil || ways[0].Unknown != "" {
			t.Fatalf("%s: %+v, %v", tt.name, ways, err)
		}
		var got []uint64
		var again []bool
		for _, w := range ways[0].In {
			got, again = append(got, w.Probe-dwarftest.TextAddr), append(again, w.Again)
		}
		if !slices.Equal(got, tt.want) || !slices.Equal(again, tt.again) {
			t.Errorf("%s: ways in at %d, %v, want %d, %v", tt.name, got, again, tt.want, tt.again)
		}
	}
}
