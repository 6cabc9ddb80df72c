package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// A scan's result can be kept in a directory, one file per image, so that the next
// query on the same image needs no scan. A file is named after the image's build ID
// and the format. After a header it holds:
//
//   - the units,
//   - each function name, sorted, with the units that have sites of it,
//   - the code symbols, by address,
//   - each unit's records, which are decoded when a query needs the unit.
//
// All but the last are tables that are used in place: a query touches only the pages
// it needs, and only the units of its answer in .debug_info. Numbers are
// little-endian. A file is written under another name and then renamed, so several
// processes may write and read at once. The whole file is checked before it is used,
// and it may be deleted at any time.

// KeptMagic names the format. A new format needs another magic and another suffix, so
// that two versions do not overwrite each other's files.
const (
	KeptMagic  = "bpfprologue index 4\n"
	KeptSuffix = ".4.idx"
)

// Sizes in bytes of the parts of a kept file.
const (
	keptHead     = len(KeptMagic) + 4 // magic, and a checksum of the rest
	keptCounts   = 11 * 8             // shape and lengths
	keptUnitSize = 56
	keptNameSize = 16
)

var keptCRC = crc32.MakeTable(crc32.Castagnoli)

// ErrDamagedIndex is wrapped by errors about a kept scan that is damaged.
var ErrDamagedIndex = errors.New("damaged")

// KeptPath returns the file for the image's scan, or "" if none is to be kept.
func (x *Index) KeptPath() string {
	if x.O.Dir == "" || x.O.Key == "" {
		return ""
	}
	return filepath.Join(x.O.Dir, x.O.Key+KeptSuffix)
}

// kept is a scan that was read back.
type kept struct {
	mapped *mapping.Mapping
	names  []byte // table of NameRef and offset in lists
	lists  []byte // units of each name: a count, then differences, in ULEB128
	syms   []byte
	recs   [][]byte // by unit
}

// shape distinguishes images with the same build ID but different sections: the debug
// information may be in the file or in a separate one.
func (x *Index) shape() [5]uint64 {
	return [...]uint64{
		uint64(len(x.Data.Info)), uint64(len(x.Data.Abbrev)), uint64(len(x.Data.Str)), uint64(len(x.Data.LineStr)),
		uint64(len(x.Data.Loclists) + len(x.Data.Loc)),
	}
}

// keep writes the scan's result.
func (x *Index) keep() error {
	path := x.KeptPath()
	if path == "" {
		return nil
	}
	body, err := x.encodeScan()
	if err != nil {
		return err
	}
	head := append([]byte(KeptMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(head[len(KeptMagic):], crc32.Checksum(body, keptCRC))
	if err := os.MkdirAll(x.O.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(x.O.Dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(head, body...))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return Evict(x.O.Dir, x.O.Limit, path)
}

// encodeScan writes everything after the checksum.
func (x *Index) encodeScan() ([]byte, error) {
	le := binary.LittleEndian
	var units, recs []byte
	byName := make(map[NameRef][]int)
	for i := range x.Units {
		u := &x.Units[i]
		at := len(recs)
		recs = AppendRecs(recs, u.Recs)
		for _, v := range [...]uint64{u.Off, u.End, u.First, u.AbbrevOff, u.Signature, u.TypeOff} {
			units = le.AppendUint64(units, v)
		}
		units = le.AppendUint32(units, uint32(len(recs)-at))
		dwarf64 := byte(0)
		if u.Dwarf64 {
			dwarf64 = 0x80
		}
		units = append(units, byte(u.Version), u.AddrSize, u.Kind, dwarf64)
		for j := range u.Recs {
			r := &u.Recs[j]
			n := u.NameRefOf(r)
			if r.Flags&HasPC == 0 || n == NameNone {
				continue
			}
			if l := byName[n]; len(l) == 0 || l[len(l)-1] != i {
				byName[n] = append(l, i)
			}
		}
	}
	type entry struct {
		name string
		ref  NameRef
	}
	entries := make([]entry, 0, len(byName))
	for n := range byName {
		entries = append(entries, entry{x.NameOf(n), n})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.ref, b.ref))
	})
	var names, lists []byte
	for _, e := range entries {
		names = le.AppendUint64(names, uint64(e.ref))
		names = le.AppendUint64(names, uint64(len(lists)))
		lists = binary.AppendUvarint(lists, uint64(len(byName[e.ref])))
		prev := 0
		for _, i := range byName[e.ref] {
			lists = binary.AppendUvarint(lists, uint64(i-prev))
			prev = i
		}
	}
	syms, err := x.O.Symbols()
	if err != nil {
		return nil, err
	}
	var body []byte
	for _, v := range x.shape() {
		body = le.AppendUint64(body, v)
	}
	for _, n := range []int{len(x.Units), len(names), len(lists), len(syms), len(recs), 0} {
		body = le.AppendUint64(body, uint64(n))
	}
	return slices.Concat(body, units, names, lists, syms, recs), nil
}

// AppendRecs appends a unit's records to b, with parents and roots as distances.
func AppendRecs(b []byte, recs []Rec) []byte {
	b = binary.AppendUvarint(b, uint64(len(recs)))
	prev := uint32(0)
	for i := range recs {
		r := &recs[i]
		b = binary.AppendUvarint(b, uint64(r.Off-prev))
		prev = r.Off
		b = append(b, byte(r.Flags))
		b = binary.AppendUvarint(b, uint64(int64(i)-int64(r.Parent)))
		b = binary.AppendVarint(b, int64(r.Root)-int64(i))
		if r.Root < 0 || r.Root == int32(i) {
			b = binary.AppendUvarint(b, uint64(r.Name&^NameSection)<<4|uint64(r.Name>>60))
		}
	}
	return b
}

// DecodeRecs decodes a unit's records. ok is false if AppendRecs did not write them.
func DecodeRecs(d []byte) (recs []Rec, ok bool) {
	b := bin.Reader{D: d}
	off := uint64(0)
	n := b.ULEB()
	if n > uint64(len(d))/4 { // each takes 4 bytes or more
		return nil, false
	}
	recs = make([]Rec, 0, n)
	for i := int64(0); i < int64(n); i++ {
		off += b.ULEB()
		r := Rec{Off: uint32(off), Flags: Flag(b.U8())}
		parent := i - int64(b.ULEB())
		root := i + zigzag(&b)
		if parent < -1 || parent >= i || root < -1 || root > 1<<31-1 || off > 1<<32-1 {
			return nil, false
		}
		r.Parent, r.Root = int32(parent), int32(root)
		if root < 0 || root == i {
			n := b.ULEB()
			r.Name = NameRef(n>>4) | NameRef(n&0xf)<<60
		}
		recs = append(recs, r)
	}
	if b.Bad || b.P != len(d) {
		return nil, false
	}
	for i := range recs {
		if int(recs[i].Root) >= len(recs) {
			return nil, false
		}
	}
	return recs, true
}

// zigzag reads what binary.AppendVarint writes.
func zigzag(b *bin.Reader) int64 {
	u := b.ULEB()
	return int64(u>>1) ^ -int64(u&1)
}

// recall uses the image's kept scan and reports whether there was one.
func (x *Index) recall() (bool, error) {
	path := x.KeptPath()
	if path == "" {
		return false, nil
	}
	m, err := mapping.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = mapping.Guard(func() error { return x.readKept(m.Data) })
	if err != nil {
		return false, errors.Join(fmt.Errorf("%s: the kept index is %w; it will be made anew", path, err), m.Close())
	}
	x.Kept.mapped = m
	now := time.Now()
	x.warn(os.Chtimes(path, now, now)) // Evict goes by this time
	return true, nil
}

func (x *Index) readKept(d []byte) error {
	if len(d) < keptHead+keptCounts || string(d[:len(KeptMagic)]) != KeptMagic {
		return ErrDamagedIndex
	}
	if crc32.Checksum(d[keptHead:], keptCRC) != binary.LittleEndian.Uint32(d[len(KeptMagic):]) {
		return ErrDamagedIndex
	}
	b := bin.Reader{D: d, P: keptHead}
	for _, n := range x.shape() {
		if b.U64() != n {
			return errors.New("of an image with other sections")
		}
	}
	count, names, lists, syms, recs := b.U64(), b.U64(), b.U64(), b.U64(), b.U64()
	b.U64()
	if count > uint64(len(d))/keptUnitSize {
		return ErrDamagedIndex
	}
	table := bin.Reader{D: b.Bytes(count * keptUnitSize)}
	k := &kept{names: b.Bytes(names), lists: b.Bytes(lists), syms: b.Bytes(syms), recs: make([][]byte, count)}
	r := bin.Reader{D: b.Bytes(recs)}
	if b.Bad || b.P != len(d) || names%keptNameSize != 0 {
		return ErrDamagedIndex
	}
	units := make([]dw.Unit, count)
	for i := range units {
		u := &units[i]
		u.Data, u.Number, u.Off, u.End, u.First, u.AbbrevOff = x.Data, i, table.U64(), table.U64(), table.U64(), table.U64()
		u.Signature, u.TypeOff = table.U64(), table.U64()
		k.recs[i] = r.Bytes(uint64(table.U32()))
		u.Version, u.AddrSize, u.Kind, u.Dwarf64 = uint16(table.U8()), table.U8(), table.U8(), table.U8() != 0
		if u.End > uint64(len(x.Data.Info)) || u.First > u.End || u.Off > u.First || i > 0 && u.Off < units[i-1].End {
			return ErrDamagedIndex
		}
	}
	if r.Bad || table.Bad {
		return ErrDamagedIndex
	}
	if !x.O.UseSymbols(k.syms) {
		return ErrDamagedIndex
	}
	x.Kept, x.Data.Units = k, units
	x.addUnits()
	return nil
}

// name returns the i-th of the sorted names.
func (k *kept) name(i int) NameRef {
	return NameRef(binary.LittleEndian.Uint64(k.names[i*keptNameSize:]))
}

// choose returns the units that have sites of the functions that match, with a selector
// for them.
func (k *kept) choose(x *Index, m matcher) (sel Selector, units []int) {
	n := len(k.names) / keptNameSize
	want := make([]bool, len(x.Units))
	sel = Selector{x: x, m: m, known: true, memo: make(map[NameRef]bool), every: m == nil}
	from := 0
	literal, isLit := "", false
	if m != nil {
		literal, isLit = m.Literal()
	}
	if isLit {
		from = sort.Search(n, func(i int) bool { return x.NameOf(k.name(i)) >= literal })
	}
	for i := from; i < n; i++ {
		name := x.NameOf(k.name(i))
		if isLit && name != literal {
			break
		}
		if !isLit && m != nil && !m.Match(name) {
			continue
		}
		sel.memo[k.name(i)] = true
		b := bin.Reader{D: k.lists}
		b.Seek(binary.LittleEndian.Uint64(k.names[i*keptNameSize+8:]))
		unit := uint64(0)
		for left := b.ULEB(); left > 0 && !b.Bad; left-- {
			if unit += b.ULEB(); unit < uint64(len(want)) {
				want[unit] = true
			}
		}
	}
	for i, w := range want {
		if w {
			units = append(units, i)
		}
	}
	return sel, units
}

// functions returns all names, sorted.
func (k *kept) functions(x *Index) []string {
	names := make([]string, len(k.names)/keptNameSize)
	for i := range names {
		names[i] = x.NameOf(k.name(i))
	}
	return names
}

// recallRecords decodes the unit's records in a kept scan.
func (u *Unit) recallRecords() error {
	var ok bool
	if u.Recs, ok = DecodeRecs(u.Index.Kept.recs[u.Number]); !ok {
		return fmt.Errorf("%s: the kept index is %w: delete it, or do without", u.Index.KeptPath(), ErrDamagedIndex)
	}
	return nil
}

// KeptFile is one kept scan.
type KeptFile struct {
	Key  string
	Size int64 // bytes
	Used time.Time
}

// ListKept returns the scans kept in a directory, the most recently used one first.
func ListKept(dir string) ([]KeptFile, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var out []KeptFile
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), KeptSuffix)
		if !ok {
			continue
		}
		if st, err := e.Info(); err == nil { // else another process has removed it
			out = append(out, KeptFile{id, st.Size(), st.ModTime()})
		}
	}
	slices.SortStableFunc(out, func(a, b KeptFile) int { return b.Used.Compare(a.Used) })
	return out, err
}

// ClearKept removes all scans kept in a directory.
func ClearKept(dir string) error {
	list, err := ListKept(dir)
	for _, k := range list {
		err = errors.Join(err, k.remove(dir))
	}
	return err
}

func (k *KeptFile) remove(dir string) error {
	err := os.Remove(filepath.Join(dir, k.Key+KeptSuffix))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// defaultLimit is the size in bytes that all kept scans may have together.
const defaultLimit = 1 << 30

// Evict removes the least recently used files until the others take limit bytes or
// less. It never removes the file at path.
func Evict(dir string, limit int64, path string) error {
	if limit == 0 {
		limit = defaultLimit
	}
	list, err := ListKept(dir)
	total := int64(0)
	for _, k := range list {
		total += k.Size
		if total > limit && k.Key+KeptSuffix != filepath.Base(path) {
			err = errors.Join(err, k.remove(dir))
		}
	}
	return err
}
