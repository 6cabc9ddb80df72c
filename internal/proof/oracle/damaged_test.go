package oracle_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// TestDamaged: damaged frames, and types that contain themselves, are errors.
func TestDamaged(t *testing.T) {
	at := dwarftest.At
	array := &dwarftest.DIE{Tag: dw.TagArrayType}
	array.Attrs = []dwarftest.Attr{at(dw.AttrType, dw.FormRef4, array)}
	member := &dwarftest.DIE{Tag: dw.TagMember}
	structure := &dwarftest.DIE{Tag: dw.TagStructType, Attrs: []dwarftest.Attr{at(dw.AttrByteSize, dw.FormData1, 4)}, Kids: []*dwarftest.DIE{member}}
	member.Attrs = []dwarftest.Attr{at(dw.AttrName, dw.FormString, "m"), at(dw.AttrType, dw.FormRef4, structure)}
	for _, tt := range []struct {
		typ  *dwarftest.DIE
		more []dwarftest.Section
		want string
	}{
		{array, nil, "types of the entry at "},
		{structure, nil, "types of the entry at "},
		// The augmentation data of the description would end after its section.
		{nil, []dwarftest.Section{{Name: ".eh_frame", Type: 1, Flags: 2, Addr: 0x500000, Data: dwarftest.Cat(
			dwarftest.FrameEntry(dwarftest.LE32(0), 1, "zR", 1, dwarftest.SLEB(-8), 16, 1, 3, 0x0c, 7, 8),
			dwarftest.FrameEntry(dwarftest.LE32(24), dwarftest.LE32(dwarftest.TextAddr), dwarftest.LE32(16), 0x7f))}}, "damaged call frame information"},
	} {
		f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
			at(dw.AttrName, dw.FormString, "f"), at(dw.AttrLowpc, dw.FormAddr, uint64(dwarftest.TextAddr)), at(dw.AttrHighpc, dw.FormData8, 16),
		}}
		kids := []*dwarftest.DIE{f}
		if tt.typ != nil {
			f.Kids = append(f.Kids, &dwarftest.DIE{Tag: dw.TagFormalParameter, Attrs: []dwarftest.Attr{
				at(dw.AttrName, dw.FormString, "p"), at(dw.AttrType, dw.FormRef4, tt.typ), at(dw.AttrLocation, dw.FormExprloc, []byte{0x93, 4}),
			}})
			kids = append(kids, tt.typ)
		}
		file, err := oracle.FromBytes(dwarftest.Image([]dwarftest.CU{{Version: 5, Root: dwarftest.Root(kids...)}}, tt.more...))
		if err != nil {
			t.Fatal(err)
		}
		r, err := file.NewReader()
		if err != nil {
			t.Fatal(err)
		}
		sites, err := r.Sites(file.Units[0])
		if err == nil && tt.typ != nil {
			_, err = sites[0].Params[0].FillPadding(oracle.Result{Kind: oracle.InPieces, Pieces: []oracle.Piece{{Result: oracle.Result{Kind: oracle.IsMissing}, Bits: 32}}})
		} else if err == nil {
			_, err = file.CFA(dwarftest.TextAddr)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
