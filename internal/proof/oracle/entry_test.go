package oracle_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
)

// indexed returns an image as clang writes DWARF 5: the unit's name is an index in a table of strings, and where that
// table is comes after it. The table is larger than the strings, so that the length in its header is no offset of one.
func indexed(base uint64, more ...*dwarftest.DIE) []byte {
	at := dwarftest.At
	const names = 64
	offsets := dwarftest.Cat(dwarftest.LE32(4+4*names), 5, 0, 0, 0)
	for i := range uint64(names) {
		offsets = append(offsets, dwarftest.LE32(2*(i%3))...)
	}
	f := &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormStrx1, 2), at(dw.AttrLowpc, dw.FormAddrx1, 1), at(dw.AttrHighpc, dw.FormData4, 16),
	}}
	root := &dwarftest.DIE{Tag: dw.TagCompileUnit, Kids: append([]*dwarftest.DIE{f}, more...), Attrs: []dwarftest.Attr{
		at(dw.AttrName, dw.FormStrx1, 0), at(dw.AttrLowpc, dw.FormAddrx1, 0),
		at(dw.AttrStrOffsetsBase, dw.FormSecOffset, base), at(dw.AttrAddrBase, dw.FormSecOffset, 8),
	}}
	return dwarftest.Image([]dwarftest.CU{{Version: 5, Root: root}},
		dwarftest.Debug(".debug_str", []byte("a\x00b\x00f\x00")), dwarftest.Debug(".debug_str_offsets", offsets),
		dwarftest.Debug(".debug_addr", dwarftest.Cat(dwarftest.LE32(20), 5, 0, 8, 0, dwarftest.LE64(dwarftest.TextAddr), dwarftest.LE64(dwarftest.TextAddr+16))))
}

func sites(image []byte) ([]*oracle.Site, error) {
	file, err := oracle.FromBytes(image)
	if err != nil {
		return nil, err
	}
	r, err := file.NewReader()
	if err != nil {
		return nil, err
	}
	return r.Sites(file.Units[0])
}

// TestIndices: strings and addresses are found by index, whatever comes first.
func TestIndices(t *testing.T) {
	list, err := sites(indexed(8))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Function != "f" || list[0].Addr != dwarftest.TextAddr+16 {
		t.Errorf("got %+v", list)
	}
	for want, image := range map[string][]byte{
		"no string with index 0": indexed(1 << 20),
		"no string at 0x63":      indexed(8, &dwarftest.DIE{Tag: dw.TagVariable, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrName, dw.FormStrp, 99)}}),
		"no address with index":  indexed(8, &dwarftest.DIE{Tag: dw.TagSubprogram, Attrs: []dwarftest.Attr{dwarftest.At(dw.AttrLowpc, dw.FormAddrx1, 9)}}),
	} {
		if list, err := sites(image); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %+v, %v, want ... %s", list, err, want)
		}
	}
}
