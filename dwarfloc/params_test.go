package dwarfloc

import (
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
)

// TestManyParams: the time does not grow with the third power of the number of parameters,
// in whichever order an instance has them.
func TestManyParams(t *testing.T) {
	const n = 5000
	at := dwarftest.At
	abstract := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "many"), at(dw.AttrInline, dw.FormData1, 1)}}
	inline := &dwarftest.DIE{Tag: dw.TagInlinedSubroutine, Attrs: []dwarftest.Attr{
		at(dw.AttrAbstractOrigin, dw.FormRef4, abstract), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData1, 8),
	}}
	for range n {
		abstract.Kids = append(abstract.Kids, &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{at(dw.AttrName, dw.FormString, "p")}})
	}
	for i := range n {
		inline.Kids = append(inline.Kids, &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{
			at(dw.AttrAbstractOrigin, dw.FormRef4, abstract.Kids[n-1-i]), at(dw.AttrConstValue, dw.FormData2, n-1-i),
		}})
	}
	fun := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormString, "fun"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData1, 16),
	}, Kids: []*dwarftest.DIE{inline}}
	img := testImage(t, []dwarftest.CU{{Version: 5, Root: dwarftest.Root(abstract, fun)}})
	s := sitesOf(t, img, "many", 1)[0]
	begin := time.Now()
	params, err := s.Params()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("%d parameters took %v", n, took)
	}
	if err != nil || len(params) != n {
		t.Fatalf("%d parameters, %v; want %d", len(params), err, n)
	}
	for i, v := range params {
		if v.Loc.Expr == nil || v.Loc.Expr.K != uint64(i) || v.Entries != 1 {
			t.Fatalf("parameter %d: %s, %d entries", i, v.Loc.Text(img.Arch()), v.Entries)
		}
	}
}
