package dw

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// packIndex writes an index: version 2 or 5, the columns' numbers, and for each unit its signature and its parts.
func packIndex(version int, columns []uint32, units ...[]uint64) []byte {
	le := binary.LittleEndian
	var b []byte
	if version == 5 {
		b = le.AppendUint16(b, 5)
		b = le.AppendUint16(b, 0)
	} else {
		b = le.AppendUint32(b, uint32(version))
	}
	slots := 2 * len(units)
	for _, n := range []int{len(columns), len(units), slots} {
		b = le.AppendUint32(b, uint32(n))
	}
	for i := range slots {
		var signature uint64
		if i < len(units) {
			signature = units[i][0]
		}
		b = le.AppendUint64(b, signature)
	}
	for i := range slots {
		row := uint32(0)
		if i < len(units) {
			row = uint32(i + 1)
		}
		b = le.AppendUint32(b, row)
	}
	for _, c := range columns {
		b = le.AppendUint32(b, c)
	}
	for k := range 2 {
		for _, u := range units {
			for i := range columns {
				b = le.AppendUint32(b, uint32(u[1+2*i+k]))
			}
		}
	}
	return b
}

func packSize(string) int { return 0x100 }

func packError(off uint64, format string, args ...any) error {
	return fmt.Errorf("+%#x: %s", off, fmt.Sprintf(format, args...))
}

// TestPackIndex: rows come in the order of their units, with the sections that the version's numbers mean.
func TestPackIndex(t *testing.T) {
	for _, version := range []int{2, 5} {
		rows, err := readPackIndex(packIndex(version, []uint32{1, 3, 5}, []uint64{7, 0x40, 0x10, 0, 8, 2, 3}, []uint64{9, 0, 0x40, 8, 8, 0xf0, 0x10}), false, packSize, packError)
		if err != nil || len(rows) != 2 || rows[0].signature != 9 || rows[1].signature != 7 || rows[1].units != (span32{0x40, 0x10}) || rows[0].abbrev != (span32{8, 8}) {
			t.Fatalf("version %d: %+v, %v", version, rows, err)
		}
		lists := map[int]span32{2: rows[0].loc, 5: rows[0].loclists}[version]
		if lists != (span32{0xf0, 0x10}) {
			t.Errorf("version %d: %+v", version, rows[0])
		}
	}
	good := packIndex(5, []uint32{1}, []uint64{7, 0, 8}, []uint64{8, 8, 8})
	for what, change := range map[string]func(d []byte) []byte{
		"+0x0: unsupported version 4 of an index": func(d []byte) []byte { d[0] = 4; return d },
		"does not fit into":                       func(d []byte) []byte { return d[:len(d)-1] },
		"the slot of 0x0000000000000008 names row 1, of 2, which does not exist or has another's": func(d []byte) []byte { d[16+4*8+4] = 1; return d },
		"row 2 has no slot": func(d []byte) []byte { d[16+4*8+4] = 0; return d },
		"unknown section 9": func(d []byte) []byte { d[16+4*12] = 9; return d },
		"0x8 bytes at 0xff of .debug_info.dwo, which has 0x100":                 func(d []byte) []byte { d[16+4*12+4] = 0xff; return d },
		"an index of 4294967295 units, 4 slots and 1 columns does not fit into": func(d []byte) []byte { copy(d[8:], "\xff\xff\xff\xff"); return d },
		"an index of 2 units, 4294967295 slots and 1 columns does not fit into": func(d []byte) []byte { copy(d[12:], "\xff\xff\xff\xff"); return d },
		"an index of 2 units, 4 slots and 4294967295 columns does not fit into": func(d []byte) []byte { copy(d[4:], "\xff\xff\xff\xff"); return d },
	} {
		if _, err := readPackIndex(change(bytes.Clone(good)), false, packSize, packError); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
}

// FuzzPackIndex: each part is in its section, and rows have an order.
func FuzzPackIndex(f *testing.F) {
	f.Add(packIndex(2, []uint32{1, 2, 3, 4, 5, 6}, make([]uint64, 13)), false)
	f.Add(packIndex(5, []uint32{1, 3, 8}, []uint64{1, 2, 3, 4, 5, 6, 7}, make([]uint64, 7)), false)
	f.Add([]byte{0, 5, 0, 0}, true)
	f.Fuzz(func(t *testing.T, d []byte, bigEndian bool) {
		rows, err := readPackIndex(d, bigEndian, packSize, packError)
		if err != nil {
			return
		}
		if 12*len(rows) > len(d) {
			t.Fatalf("%d rows in %d bytes", len(rows), len(d))
		}
		if !slices.IsSortedFunc(rows, func(a, b packRow) int { return int(a.units.off) - int(b.units.off) }) {
			t.Fatal("out of order")
		}
		section := make([]byte, packSize(""))
		for _, r := range rows {
			for _, s := range []span32{r.units, r.abbrev, r.line, r.loc, r.loclists, r.strOffsets, r.rnglists} {
				if len(s.of(section)) != int(s.size) {
					t.Fatalf("%+v is outside of its section", s)
				}
			}
		}
	})
}

// FuzzSupplementary: the name and what tells the file from others are in the section.
func FuzzSupplementary(f *testing.F) {
	f.Add([]byte("common\x00\x01\x02"), false)
	f.Add([]byte("\x05\x00\x00common\x00\x02\x01\x02"), true)
	f.Fuzz(func(t *testing.T, d []byte, sup bool) {
		named := map[string][]byte{".gnu_debugaltlink": d}
		if sup {
			named = map[string][]byte{".debug_sup": d}
		}
		data := New(Sections{WordSize: 8, Errorf: func(_ string, off uint64, format string, args ...any) error {
			return packError(off, format, args...)
		}}, named)
		name, id, section, err := data.Supplementary()
		if err == nil && section != "" && (!bytes.Contains(d, []byte(name)) || !bytes.HasSuffix(d, id) && !sup || !bytes.Contains(d, id)) {
			t.Fatalf("%q, %x", name, id)
		}
		SupplementaryID(d, false)
	})
}
