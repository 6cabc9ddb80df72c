package dwarfloc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
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
// build ID and holds, behind a header:
//
//   - each function name with the units that have sites of it,
//   - each unit's records, which are decoded when a question needs the unit,
//   - the symbols of code, in order of addresses.
//
// Numbers are ULEB128 where nothing else is said. A file is written under another
// name and then renamed, so several processes may keep and read at once; it is
// checked as a whole before it is used; and it may be deleted at any time.

// keptMagic names the format; another one must have another name.
const keptMagic = "bpfprologue index 1\n"

// keptSuffix ends the names of kept files.
const keptSuffix = ".idx"

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
	names  []keptName
	units  [][]byte // records of each unit, encoded
}

type keptName struct {
	name  nameRef
	units []byte // encoded list
}

// shape tells images with one build ID but different sections apart: the debug
// information may be in the file or beside it, compressed or not.
func (img *Image) shape() []uint64 {
	return []uint64{uint64(len(img.info)), uint64(len(img.abbrev)), uint64(len(img.str)), uint64(len(img.lineStr)), uint64(len(img.units)), uint64(len(img.symData))}
}

// keep writes the scan's result.
func (img *Image) keep() error {
	path := img.keptPath()
	if path == "" {
		return nil
	}
	var body []byte
	for _, n := range img.shape() {
		body = binary.AppendUvarint(body, n)
	}
	byName := make(map[nameRef][]int)
	for i := range img.units {
		u := &img.units[i]
		for j := range u.recs {
			r := &u.recs[j]
			if r.flags&recPC == 0 {
				continue
			}
			n := u.nameRefOf(r)
			if l := byName[n]; len(l) == 0 || l[len(l)-1] != i {
				byName[n] = append(l, i)
			}
		}
	}
	body = binary.AppendUvarint(body, uint64(len(byName)))
	last := uint64(0)
	for _, n := range slices.Sorted(maps.Keys(byName)) {
		body = binary.AppendUvarint(body, uint64(n)-last)
		last = uint64(n)
		var list []byte
		prev := 0
		for _, i := range byName[n] {
			list = binary.AppendUvarint(list, uint64(i-prev))
			prev = i
		}
		body = binary.AppendUvarint(body, uint64(len(list)))
		body = append(body, list...)
	}
	for i := range img.units {
		recs := encodeRecs(img.units[i].recs)
		body = binary.AppendUvarint(body, uint64(len(recs)))
		body = append(body, recs...)
	}
	body = appendSymbols(body, img.table().syms)

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

// encodeRecs writes a unit's records; parents and roots as distances.
func encodeRecs(recs []rec) []byte {
	var b []byte
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

// decodeRecs reads them back. ok is false when they are not what encodeRecs wrote.
func decodeRecs(d []byte) (recs []rec, ok bool) {
	b := buf{d: d}
	off := uint64(0)
	for b.p < len(b.d) && !b.bad {
		i := int64(len(recs))
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
	for i := range recs {
		if int(recs[i].root) >= len(recs) {
			return nil, false
		}
	}
	return recs, !b.bad
}

// zigzag reads what binary.AppendVarint writes.
func (b *buf) zigzag() int64 {
	u := b.uleb()
	return int64(u>>1) ^ -int64(u&1)
}

func appendSymbols(b []byte, syms []sym) []byte {
	b = binary.AppendUvarint(b, uint64(len(syms)))
	addr := uint64(0)
	for i := range syms {
		s := &syms[i]
		b = binary.AppendUvarint(b, s.addr-addr)
		addr = s.addr
		b = binary.AppendUvarint(b, s.size)
		b = binary.AppendUvarint(b, uint64(s.name))
		kind := s.rank << 1
		if s.global {
			kind |= 1
		}
		b = append(b, kind)
	}
	return b
}

func readSymbols(b *buf) ([]sym, bool) {
	n := b.uleb()
	if n > uint64(len(b.d)-b.p) {
		return nil, false
	}
	syms := make([]sym, n)
	addr := uint64(0)
	for i := range syms {
		s := &syms[i]
		addr += b.uleb()
		s.addr, s.size, s.name = addr, b.uleb(), uint32(b.uleb())
		kind := b.u8()
		s.rank, s.global = kind>>1, kind&1 != 0
	}
	return syms, !b.bad
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
	head := len(keptMagic) + 4
	if len(d) < head || string(d[:len(keptMagic)]) != keptMagic {
		return errDamagedIndex
	}
	if crc32.Checksum(d[head:], keptCRC) != binary.LittleEndian.Uint32(d[len(keptMagic):]) {
		return errDamagedIndex
	}
	b := buf{d: d, p: head}
	for _, n := range img.shape() {
		if b.uleb() != n {
			return errors.New("of an image with other sections")
		}
	}
	count := b.uleb()
	if count > uint64(len(d)) {
		return errDamagedIndex
	}
	k := &kept{names: make([]keptName, count), units: make([][]byte, len(img.units))}
	last := uint64(0)
	for i := range k.names {
		last += b.uleb()
		k.names[i] = keptName{nameRef(last), b.bytes(b.uleb())}
	}
	for i := range k.units {
		k.units[i] = b.bytes(b.uleb())
	}
	syms, ok := readSymbols(&b)
	if b.bad || !ok {
		return errDamagedIndex
	}
	t := &img.symbols
	t.once.Do(func() {
		t.syms = syms
		_, t.strs = img.symbolSections()
	})
	img.kept = k
	return nil
}

// unitsOf returns the units that have sites of the names that are selected.
func (k *kept) unitsOf(sel *selector, total int) []int {
	want := make([]bool, total)
	for i := range k.names {
		n := &k.names[i]
		if !sel.match(n.name) {
			continue
		}
		b := buf{d: n.units}
		unit := uint64(0)
		for b.p < len(b.d) && !b.bad {
			if unit += b.uleb(); unit < uint64(total) {
				want[unit] = true
			}
		}
	}
	var out []int
	for i, w := range want {
		if w {
			out = append(out, i)
		}
	}
	return out
}

// records returns the unit's records, decoding those of a kept scan.
func (u *unit) records() error {
	if u.img.kept == nil {
		return nil
	}
	u.recOnce.Do(func() {
		var ok bool
		units := u.img.units
		i := sort.Search(len(units), func(i int) bool { return units[i].off >= u.off })
		if u.recs, ok = decodeRecs(u.img.kept.units[i]); !ok {
			u.recErr = fmt.Errorf("%s: the kept index is %w: delete it, or do without", u.img.keptPath(), errDamagedIndex)
		}
	})
	return u.recErr
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
