package dwarfloc

import (
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// placed is where a row of the line table begins. A line below 0 is that of a row that begins no statement.
type placed struct {
	addr uint64
	line int
}

// inlinedImage has a function with code, from a compiler, and an instance of inner in it, in ranges.
func inlinedImage(t *testing.T, producer, code string, rows []placed, in ...uint64) *Image {
	t.Helper()
	return imageBy(t, producer, code, rows, in)
}

// imageBy is inlinedImage. All of an instance can be one of leaf that is inlined into it.
func imageBy(t *testing.T, producer, code string, rows []placed, in []uint64, kids ...*dwarftest.DIE) *Image {
	t.Helper()
	return imageBeside(t, producer, code, rows, in, nil, kids...)
}

// imageBeside is imageBy with further instances in the function itself.
func imageBeside(t *testing.T, producer, code string, rows []placed, in []uint64, beside []*dwarftest.DIE, kids ...*dwarftest.DIE) *Image {
	t.Helper()
	const base = uint64(dwarftest.TextAddr)
	text := dwarftest.Text()
	size := copy(text.Data, dwarftest.Hex(t, code))
	at := dwarftest.At
	abstract := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "inner"), at(dw.AttrInline, dw.FormData1, 1), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 1),
	}}
	instance := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
		at(dw.AttrAbstractOrigin, dw.FormRef4, abstract), at(dw.AttrRanges, dw.FormSecOffset, 0), at(dw.AttrCallFile, dw.FormData1, 1), at(dw.AttrCallLine, dw.FormData1, 24),
	}, Kids: kids}
	outer := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "outer"), at(dw.AttrDeclFile, dw.FormData1, 1), at(dw.AttrDeclLine, dw.FormData1, 19),
		at(dw.AttrLowpc, dw.FormAddr, base), at(dw.AttrHighpc, dw.FormData1, size),
	}, Kids: append([]*dwarftest.DIE{instance}, beside...)}
	root := dwarftest.Root(abstract, outer)
	root.Kids = append(root.Kids, abstractsOf(kids)...)
	root.Attrs = append(root.Attrs, at(dw.AttrProducer, dw.FormString, producer), at(dw.AttrStmtList, dw.FormSecOffset, 0))
	var ranges []byte
	for _, v := range append(in, 0, 0) {
		ranges = append(ranges, dwarftest.LE64(v)...)
	}
	program := dwarftest.Cat(0, 9, 2, dwarftest.LE64(base)) // DW_LNE_set_address
	last, stmt := placed{0, 1}, true
	for _, r := range rows {
		if stmt != (r.line > 0) {
			program, stmt = append(program, 6), !stmt // DW_LNS_negate_stmt
		}
		r.line = max(r.line, -r.line)
		program = append(program, dwarftest.Cat(2, dwarftest.ULEB(r.addr-last.addr), 3, dwarftest.SLEB(int64(r.line-last.line)), 1)...) // DW_LNS_advance_pc, DW_LNS_advance_line, DW_LNS_copy
		last = r
	}
	program = append(program, dwarftest.Cat(2, dwarftest.ULEB(uint64(size)-last.addr), 0, 1, 1)...) // DW_LNE_end_sequence
	var w dwarftest.Writer
	w.Add(dwarftest.CU{Version: 4, Root: root})
	img, err := FromBytes("test", dwarftest.ELF(text, dwarftest.Debug(".debug_info", w.Info), dwarftest.Debug(".debug_abbrev", w.Abbrev),
		dwarftest.Debug(".debug_ranges", ranges), dwarftest.Debug(".debug_line", dwarftest.LineTable("source.c", program))), nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// abstractsOf returns what inlined instances are of.
func abstractsOf(instances []*dwarftest.DIE) (out []*dwarftest.DIE) {
	for _, i := range instances {
		out = append(out, i.Attrs[0].V.(*dwarftest.DIE))
	}
	return out
}

// TestAhead: instructions of a body that clang has moved ahead of it, which do nothing that can be seen, begin no run.
func TestAhead(t *testing.T) {
	// xor %ecx,%ecx; 2: xorps %xmm0,%xmm0; movaps %xmm0,-24(%rsp); 10: test $1,%cl; jne 22; 15: xorps %xmm0,%xmm0; 18: movups %xmm0,(%rax); 21: nop; inc %ecx; cmp $5,%ecx; jl 10; ret
	const again = "31c9" + "0f57c0" + "0f294424e8" + "f6c101" + "7507" + "0f57c0" + "0f1100" + "90" + "ffc1" + "83f905" + "7ced" + "c3"
	for _, tt := range []struct {
		name, code string
		rows       []placed
		in         []uint64
		want       []uint64
	}{
		{
			"the load of a global variable, ahead of the caller's argument",
			"31c9" + "4c6330" + "4b8b34f0" + "85f6" + "7820" + "ff06" + "eb1c" + // xor %ecx,%ecx; movslq (%rax),%r14; 5: mov (%r8,%r14,8),%rsi; test %esi,%esi; js 45; incl (%rsi); jmp 45
				"488b0500000000" + "488b1510000000" + "4c633488" + "4a8b34f2" + // 17: mov (%rip),%rax; mov 16(%rip),%rdx; movslq (%rax,%rcx,4),%r14; 35: mov (%rdx,%r14,8),%rsi
				"85f6" + "7802" + "ff06" + // test %esi,%esi; js 45; incl (%rsi)
				"ffc1" + "83f905" + "7cdd" + "c3", // 45: inc %ecx; cmp $5,%ecx; jl 17; ret
			[]placed{{0, 20}, {2, 21}, {5, 2}, {9, 3}, {13, 4}, {17, 21}, {24, 2}, {31, 21}, {35, 2}, {39, 3}, {43, 4}, {45, 22}},
			[]uint64{5, 17, 24, 31, 35, 45},
			[]uint64{5, 35},
		},
		{
			"what only some paths need, ahead of the caller's tests",
			"31c9" + "8b4708" + "4863d0" + // xor %ecx,%ecx; 2: mov 8(%rdi),%eax; 5: movslq %eax,%rdx
				"ff07" + "83f810" + "7713" + "a801" + "740f" + // incl (%rdi); cmp $16,%eax; ja 34; test $1,%al; je 34
				"4839f2" + "7d0a" + "895708" + "8a0416" + // 19: cmp %rsi,%rdx; jge 34; mov %edx,8(%rdi); mov (%rsi,%rdx),%al
				"8807" + "9090" + "ffc1" + "83f905" + "7cd9" + "c3", // mov %al,(%rdi); nop; nop; 34: inc %ecx; cmp $5,%ecx; jl 2; ret
			[]placed{{0, 20}, {2, 21}, {5, 2}, {8, 21}, {10, 22}, {15, 23}, {19, 2}, {24, 3}, {30, 24}, {34, 25}},
			[]uint64{5, 8, 19, 30},
			[]uint64{19},
		},
		{
			"a test that is all of a run, ahead of the caller's",
			"31c9" + "8b4708" + "39f0" + // xor %ecx,%ecx; 2: mov 8(%rdi),%eax; 5: cmp %esi,%eax
				"7413" + "a801" + "740f" + // je 28; test $1,%al; je 28
				"39d0" + "7d0b" + "895708" + "8a0416" + "8807" + "909090" + // 13: cmp %edx,%eax; jge 28; mov %edx,8(%rdi); mov (%rsi,%rdx),%al; mov %al,(%rdi)
				"ffc1" + "83f905" + "7cdf" + "c3", // 28: inc %ecx; cmp $5,%ecx; jl 2; ret
			[]placed{{0, 20}, {2, 21}, {5, 2}, {7, 22}, {13, 2}, {17, 3}, {23, 24}, {28, 25}},
			[]uint64{5, 7, 13, 23},
			[]uint64{5, 13},
		},
		{
			"a constant that is made again for the caller",
			again,
			[]placed{{0, 20}, {2, 2}, {10, 21}, {15, 2}, {18, 22}, {21, 23}},
			[]uint64{2, 10, 15, 18},
			[]uint64{2},
		},
		{
			"a constant that is made again, and stored, by another run",
			again,
			[]placed{{0, 20}, {2, 2}, {10, 21}, {15, 2}, {21, 23}},
			[]uint64{2, 10, 15, 21},
			[]uint64{2, 15},
		},
		{
			"runs of a loop behind which their stores are",
			"31c9" + "8b4708" + "01f0" + "c1c003" + "83f810" + "77f6" + "894708" + "c3", // 2: mov 8(%rdi),%eax; 5: add %esi,%eax; rol $3,%eax; cmp $16,%eax; ja 5; 15: mov %eax,8(%rdi); ret
			[]placed{{0, 20}, {2, 21}, {5, 2}, {10, 22}, {15, 3}, {18, 25}},
			[]uint64{5, 10, 15, 18},
			[]uint64{5},
		},
	} {
		img := inlinedImage(t, "clang version 14.0.6", tt.code, tt.rows, tt.in...)
		ways, err := img.waysOfSites(t.Context(), sitesOf(t, img, "inner", 1))
		if err != nil || ways[0].Unknown != "" {
			t.Fatalf("%s: %+v, %v", tt.name, ways, err)
		}
		var got []uint64
		for _, w := range ways[0].In {
			if got = append(got, w.Probe-dwarftest.TextAddr); w.Again {
				t.Errorf("%s: %+v", tt.name, w)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: ways in at %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestReloads: GCC gives what it loads again and stores in a slot of the frame, by the frame pointer too, the position of an instruction of the body. That may be
// no run.
func TestReloads(t *testing.T) {
	const code = "55" + "4889e5" + "4883ec40" + "85f6" + "7408" + // push %rbp; mov %rsp,%rbp; sub $64,%rsp; test %esi,%esi; je 20
		"ff07" + "8b4df8" + "c9" + "c3" + "90" + // 12: incl (%rdi); 14: mov -8(%rbp),%ecx; leave; ret; nop
		"85d2" + "7506" + "8b45f8" + "8945f0" + "ebee" // 20: test %edx,%edx; jne 30; 24: mov -8(%rbp),%eax; mov %eax,-16(%rbp); 30: jmp 14
	img := inlinedImage(t, "GNU C17 12.2.0 -O2", code, []placed{{0, 20}, {12, 2}, {14, 21}, {20, 22}, {24, 3}, {30, 23}}, 12, 14, 24, 30)
	ways, err := img.waysOfSites(t.Context(), sitesOf(t, img, "inner", 1))
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, w := range ways[0].In {
		if at := w.Probe - dwarftest.TextAddr; w.Again == (at == 24) {
			got = append(got, at)
		}
	}
	if !slices.Equal(got, []uint64{12, 24}) {
		t.Errorf("ways in: %+v", ways[0].In)
	}
}

// TestChoices: GCC has computed what a body does ahead of the choice between that and another value, which was a branch. Without markers of statements it is not known
// whether a run comes before the choice.
func TestChoices(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		again      bool
	}{
		{"a choice", "01f6" + "89f0" + "83f001" + "85d2" + "0f4ef0" + "8937" + "c3", true}, // add %esi,%esi; 2: mov %esi,%eax; xor $1,%eax; test %edx,%edx; 9: cmovle %eax,%esi; mov %esi,(%rdi); ret
		{"a sum", "01f6" + "89f0" + "83f001" + "85d2" + "01c690" + "8937" + "c3", false},   // 9: add %eax,%esi
	} {
		img := inlinedImage(t, "GNU GIMPLE 12.2.0 -O2 -flto", tt.code, []placed{{0, 20}, {0, -20}, {2, -3}, {7, 21}, {7, -21}, {12, 22}}, 2, 7)
		ways, err := img.waysOfSites(t.Context(), sitesOf(t, img, "inner", 1))
		if err != nil || len(ways[0].In) != 1 || ways[0].In[0].Again != tt.again || len(ways[0].Out) != 1 || ways[0].Out[0].Again != tt.again {
			t.Errorf("%s: %+v, %v", tt.name, ways, err)
		}
	}
}

// TestBehindTest: LLVM loads behind a test of the body what the caller passes, since only one side needs it, and the body goes on at the position at which it has begun.
func TestBehindTest(t *testing.T) {
	const code = "31c9" + "8b4708" + "85c0" + "7e15" + // xor %ecx,%ecx; 2: mov 8(%rdi),%eax; 5: test %eax,%eax; jle 30
		"488b17" + "83c001" + "eb08" + // 9: mov (%rdi),%rdx; 12: add $1,%eax; jmp 25
		"48ffc2" + "83c0ff" + "7605" + "c60200" + "ebf3" + // 17: inc %rdx; 20: add $-1,%eax; jbe 30; 25: movb $0,(%rdx); jmp 17
		"ffc1" + "83f905" + "7cdd" + "c3" // 30: inc %ecx; cmp $5,%ecx; jl 2; ret
	img := inlinedImage(t, "clang version 14.0.6", code, []placed{{0, 20}, {2, 21}, {5, 2}, {9, 21}, {12, 2}, {17, 3}, {20, 2}, {25, 3}, {30, 22}}, 5, 9, 12, 30)
	ways, err := img.waysOfSites(t.Context(), sitesOf(t, img, "inner", 1))
	if err != nil || len(ways[0].In) != 2 || ways[0].In[0].Again || !ways[0].In[1].Again {
		t.Errorf("%+v, %v", ways, err)
	}
}
