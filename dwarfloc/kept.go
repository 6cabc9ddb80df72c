package dwarfloc

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

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// A scan's result can be kept in a directory, one file for each image, so that the
// next question about the same image needs no scan. A file is named by the image's
// build ID and the format, and holds, behind a header:
//
//   - the units,
//   - each function name, in the order of names, with the units that have sites of it,
//   - the symbols of code, in order of addresses,
//   - each unit's records, which are decoded when a question needs the unit.
//
// All but the last are tables that are read where they are: a question touches only
// the pages it needs, and nothing of .debug_info but the units of its answer. Numbers
// are little-endian. A file is written under another name and then renamed, so
// several processes may keep and read at once; it is checked as a whole before it is
// used; and it may be deleted at any time.

// keptMagic names the format; another one must have another name, and another
// suffix, so that two versions do not overwrite each other's files.
const (
	keptMagic  = "bpfprologue index 3\n"
	keptSuffix = ".3.idx"
)

// Sizes in bytes of the parts of a kept file.
const (
	keptHead     = len(keptMagic) + 4 // and a checksum of all that follows
	keptCounts   = 12 * 8             // shape, and lengths
	keptUnitSize = 56
	keptNameSize = 16
)

var keptCRC = crc32.MakeTable(crc32.Castagnoli)

var errDamagedIndex = errors.New("damaged")

// Cache is a directory of kept scans. The zero Cache keeps nothing.
type Cache struct {
	Dir   string
	Limit int64 // bytes of all files; the ones not used for longest go first; 0: 1 GiB
	// Warn is told when a kept scan could not be used or written; the scan is then
	// done as without a cache. nil ignores it.
	Warn func(error)
}

// UseCache makes Scan look for a kept scan, and keep its own. It must be called
// before the first question to the image. Images without a build ID are not kept.
func (img *Image) UseCache(c Cache) { img.cache = c }

// UserCacheDir is where the tool keeps scans: bpfprologue in the user's cache
// directory.
func UserCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bpfprologue"), nil
}

func (c *Cache) warn(err error) {
	if c.Warn != nil && err != nil {
		c.Warn(err)
	}
}

// keptPath is the file of an image's scan, or "".
func (img *Image) keptPath() string {
	if img.cache.Dir == "" || img.buildID == "" {
		return ""
	}
	return filepath.Join(img.cache.Dir, img.buildID+keptSuffix)
}

// kept is a scan that was read back.
type kept struct {
	mapped *mapping.Mapping
	names  []byte // table of nameRef, offset in lists
	lists  []byte // units of a name: a count, then differences, in ULEB128
	syms   []byte
	recs   [][]byte // of each unit
}

// shape tells images with one build ID but different sections apart: the debug
// information may be in the file or beside it.
func (img *Image) shape() [6]uint64 {
	return [...]uint64{
		uint64(len(img.info)), uint64(len(img.abbrev)), uint64(len(img.str)), uint64(len(img.lineStr)),
		uint64(len(img.loclists) + len(img.loc)), uint64(len(img.symData)),
	}
}

// keep writes the scan's result.
func (img *Image) keep() error {
	path := img.keptPath()
	if path == "" {
		return nil
	}
	body := img.encodeScan()
	head := append([]byte(keptMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(head[len(keptMagic):], crc32.Checksum(body, keptCRC))
	if err := os.MkdirAll(img.cache.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(img.cache.Dir, ".new-*")
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
	return img.cache.evict(path)
}

// encodeScan writes everything behind the checksum.
func (img *Image) encodeScan() []byte {
	le := binary.LittleEndian
	var units, recs []byte
	byName := make(map[nameRef][]int)
	for i := range img.units {
		u := &img.units[i]
		at := len(recs)
		recs = appendRecs(recs, u.recs)
		for _, v := range [...]uint64{u.off, u.end, u.first, u.abbrevOff, u.signature, u.typeOff} {
			units = le.AppendUint64(units, v)
		}
		units = le.AppendUint32(units, uint32(len(recs)-at))
		dwarf64 := byte(0)
		if u.dwarf64 {
			dwarf64 = 0x80
		}
		units = append(units, byte(u.version), u.addrSize, u.kind, dwarf64)
		for j := range u.recs {
			r := &u.recs[j]
			n := u.nameRefOf(r)
			if r.flags&recPC == 0 || n == nameNone {
				continue
			}
			if l := byName[n]; len(l) == 0 || l[len(l)-1] != i {
				byName[n] = append(l, i)
			}
		}
	}
	type entry struct {
		name string
		ref  nameRef
	}
	entries := make([]entry, 0, len(byName))
	for n := range byName {
		entries = append(entries, entry{img.nameOf(n), n})
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
	syms := img.table().data
	var body []byte
	for _, v := range img.shape() {
		body = le.AppendUint64(body, v)
	}
	for _, n := range []int{len(img.units), len(names), len(lists), len(syms), len(recs), 0} {
		body = le.AppendUint64(body, uint64(n))
	}
	return slices.Concat(body, units, names, lists, syms, recs)
}

// appendRecs writes a unit's records; parents and roots as distances.
func appendRecs(b []byte, recs []rec) []byte {
	b = binary.AppendUvarint(b, uint64(len(recs)))
	prev := uint32(0)
	for i := range recs {
		r := &recs[i]
		b = binary.AppendUvarint(b, uint64(r.off-prev))
		prev = r.off
		b = append(b, byte(r.flags))
		b = binary.AppendUvarint(b, uint64(int64(i)-int64(r.parent)))
		b = binary.AppendVarint(b, int64(r.root)-int64(i))
		if r.root < 0 || r.root == int32(i) {
			b = binary.AppendUvarint(b, uint64(r.name&^nameSection)<<4|uint64(r.name>>60))
		}
	}
	return b
}

// decodeRecs reads them back. ok is false when they are not what appendRecs wrote.
func decodeRecs(d []byte) (recs []rec, ok bool) {
	b := buf{d: d}
	off := uint64(0)
	n := b.uleb()
	if n > uint64(len(d))/4 { // each takes 4 bytes or more
		return nil, false
	}
	recs = make([]rec, 0, n)
	for i := int64(0); i < int64(n); i++ {
		off += b.uleb()
		r := rec{off: uint32(off), flags: recFlag(b.u8())}
		parent := i - int64(b.uleb())
		root := i + b.zigzag()
		if parent < -1 || parent >= i || root < -1 || root > 1<<31-1 || off > 1<<32-1 {
			return nil, false
		}
		r.parent, r.root = int32(parent), int32(root)
		if root < 0 || root == i {
			n := b.uleb()
			r.name = nameRef(n>>4) | nameRef(n&0xf)<<60
		}
		recs = append(recs, r)
	}
	if b.bad || b.p != len(d) {
		return nil, false
	}
	for i := range recs {
		if int(recs[i].root) >= len(recs) {
			return nil, false
		}
	}
	return recs, true
}

// zigzag reads what binary.AppendVarint writes.
func (b *buf) zigzag() int64 {
	u := b.uleb()
	return int64(u>>1) ^ -int64(u&1)
}

// recall looks for a kept scan. It reports whether there was one.
func (img *Image) recall() (bool, error) {
	path := img.keptPath()
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
	err = guard(func() error { return img.readKept(m.Data) })
	if err != nil {
		return false, errors.Join(fmt.Errorf("%s: the kept index is %w; it will be made anew", path, err), m.Close())
	}
	img.kept.mapped = m
	now := time.Now()
	img.cache.warn(os.Chtimes(path, now, now)) // what is used is evicted last
	return true, nil
}

func (img *Image) readKept(d []byte) error {
	if len(d) < keptHead+keptCounts || string(d[:len(keptMagic)]) != keptMagic {
		return errDamagedIndex
	}
	if crc32.Checksum(d[keptHead:], keptCRC) != binary.LittleEndian.Uint32(d[len(keptMagic):]) {
		return errDamagedIndex
	}
	b := buf{d: d, p: keptHead}
	for _, n := range img.shape() {
		if b.u64() != n {
			return errors.New("of an image with other sections")
		}
	}
	count, names, lists, syms, recs := b.u64(), b.u64(), b.u64(), b.u64(), b.u64()
	b.u64()
	if count > uint64(len(d))/keptUnitSize {
		return errDamagedIndex
	}
	table := buf{d: b.bytes(count * keptUnitSize)}
	k := &kept{names: b.bytes(names), lists: b.bytes(lists), syms: b.bytes(syms), recs: make([][]byte, count)}
	r := buf{d: b.bytes(recs)}
	if b.bad || b.p != len(d) || names%keptNameSize != 0 || syms%symSize != 0 {
		return errDamagedIndex
	}
	units := make([]unit, count)
	for i := range units {
		u := &units[i]
		u.img, u.off, u.end, u.first, u.abbrevOff = img, table.u64(), table.u64(), table.u64(), table.u64()
		u.signature, u.typeOff = table.u64(), table.u64()
		k.recs[i] = r.bytes(uint64(table.u32()))
		u.version, u.addrSize, u.kind, u.dwarf64 = uint16(table.u8()), table.u8(), table.u8(), table.u8() != 0
		if u.end > uint64(len(img.info)) || u.first > u.end || u.off > u.first || i > 0 && u.off < units[i-1].end {
			return errDamagedIndex
		}
	}
	if r.bad || table.bad {
		return errDamagedIndex
	}
	t := &img.symbols
	t.once.Do(func() {
		t.data = k.syms
		_, t.strs = img.symbolSections()
	})
	img.kept, img.units = k, units
	return nil
}

// name returns the i-th of the names, which are in order.
func (k *kept) name(i int) nameRef {
	return nameRef(binary.LittleEndian.Uint64(k.names[i*keptNameSize:]))
}

// choose returns the units that have sites of the functions that a matcher chooses,
// with a selector for them.
func (k *kept) choose(img *Image, m Matcher) (sel selector, units []int) {
	n := len(k.names) / keptNameSize
	want := make([]bool, len(img.units))
	sel = selector{img: img, m: m, known: true, memo: make(map[nameRef]bool)}
	_, sel.every = m.(Every)
	from := 0
	literal, isLit := m.Literal()
	if isLit {
		from = sort.Search(n, func(i int) bool { return img.nameOf(k.name(i)) >= literal })
	}
	for i := from; i < n; i++ {
		name := img.nameOf(k.name(i))
		if isLit && name != literal {
			break
		}
		if !isLit && !m.Match(name) {
			continue
		}
		sel.memo[k.name(i)] = true
		b := buf{d: k.lists}
		b.seek(binary.LittleEndian.Uint64(k.names[i*keptNameSize+8:]))
		unit := uint64(0)
		for left := b.uleb(); left > 0 && !b.bad; left-- {
			if unit += b.uleb(); unit < uint64(len(want)) {
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
func (k *kept) functions(img *Image) []string {
	names := make([]string, len(k.names)/keptNameSize)
	for i := range names {
		names[i] = img.nameOf(k.name(i))
	}
	return names
}

// recallRecords decodes the unit's records of a kept scan.
func (u *unit) recallRecords() error {
	units := u.img.units
	i := sort.Search(len(units), func(i int) bool { return units[i].off >= u.off })
	var ok bool
	if u.recs, ok = decodeRecs(u.img.kept.recs[i]); !ok {
		return fmt.Errorf("%s: the kept index is %w: delete it, or do without", u.img.keptPath(), errDamagedIndex)
	}
	return nil
}

// KeptScan is one file of a cache.
type KeptScan struct {
	BuildID string
	Size    int64 // bytes
	Used    time.Time
}

// List returns the kept scans, the one used last first.
func (c Cache) List() ([]KeptScan, error) {
	entries, err := os.ReadDir(c.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var out []KeptScan
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), keptSuffix)
		if !ok {
			continue
		}
		if st, err := e.Info(); err == nil { // else another process has removed it
			out = append(out, KeptScan{id, st.Size(), st.ModTime()})
		}
	}
	slices.SortStableFunc(out, func(a, b KeptScan) int { return b.Used.Compare(a.Used) })
	return out, err
}

// Clear removes all kept scans.
func (c Cache) Clear() error {
	list, err := c.List()
	for _, k := range list {
		err = errors.Join(err, c.remove(k))
	}
	return err
}

func (c Cache) remove(k KeptScan) error {
	err := os.Remove(filepath.Join(c.Dir, k.BuildID+keptSuffix))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// evict removes what was not used for longest until the rest is within the limit.
// The file at path stays.
func (c Cache) evict(path string) error {
	limit := c.Limit
	if limit == 0 {
		limit = 1 << 30
	}
	list, err := c.List()
	total := int64(0)
	for _, k := range list {
		total += k.Size
		if total > limit && k.BuildID+keptSuffix != filepath.Base(path) {
			err = errors.Join(err, c.remove(k))
		}
	}
	return err
}
