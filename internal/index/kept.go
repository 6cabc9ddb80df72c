package index

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/store"
)

// A scan's result can be kept in a directory, one file per image, so that the next
// query on the same image needs no scan. A file is named after the image's build ID
// and the format. It holds:
//
//   - a magic number,
//   - hashes of the identities of files that were found to have the contents below,
//   - a checksum of what follows,
//   - a hash of the contents that were scanned,
//   - the sizes of what follows:
//   - the units,
//   - each function name, sorted, with the units that have sites of it,
//   - the code symbols, by address,
//   - each unit's records, which are decoded when a query needs the unit.
//
// All but the last are tables that are used in place: a query touches only the pages
// it needs, and only the units of its answer in .debug_info. Numbers are
// little-endian. Package store writes and opens the files, so several processes may do so at once,
// and any file may be deleted at any time.
//
// A build ID is what the maker of a file says. So an index is used for a file only if the hash of the
// file's own contents is the one in the index. To hash a kernel takes a tenth of a second; therefore
// the identity of the file (device, inode, size, times) is noted then, and while that is the same the
// contents are not hashed again. An image that others can write to is not kept at all: they could
// change it while it is hashed or scanned, and change it back. Neither the scan of a hostile copy nor the
// index of one can then be an answer about the genuine image.
//
// All of an index is checked against its checksum when it is opened, and what is used of it against the
// image then: units have the headers that they are said to have, and records are functions.

// KeptMagic names the format. A new format needs another magic and another suffix, so
// that two versions do not overwrite each other's files.
const (
	KeptMagic  = "bpfprologue index 5\n"
	KeptSuffix = ".5.idx"
)

// keptFiles matches the names of kept files, of other versions too.
var keptFiles = regexp.MustCompile(`^.+\.\d+\.idx$`)

// Sizes in bytes of the parts of a kept file.
const (
	keptKnown    = 4 * sha256.Size // hashes of identities
	keptSum      = len(KeptMagic) + keptKnown
	keptHead     = keptSum + 4 // magic, identities, checksum of the rest
	keptContents = sha256.Size
	keptCounts   = 5 * 8 // numbers of units, and lengths
	keptUnitSize = 56
	keptNameSize = 16
)

var keptCRC = crc32.MakeTable(crc32.Castagnoli)

// ErrDamagedIndex is wrapped by errors about a kept scan that is damaged.
var ErrDamagedIndex = errors.New("damaged")

// keptName returns the name of the file for the image's scan, or "" if none is to be kept.
func (x *Index) keptName() string {
	if x.O.Dir == "" || x.O.Key == "" || !x.O.Private {
		return ""
	}
	return x.O.Key + KeptSuffix
}

// KeptPath returns the file for the image's scan, or "" if none is to be kept.
func (x *Index) KeptPath() string {
	if name := x.keptName(); name != "" {
		return filepath.Join(x.O.Dir, name)
	}
	return ""
}

// maxKept returns how many bytes an index of the image can have: Debian's kernel has 174 MB of
// .debug_info, and an index of 6 MB.
func (x *Index) maxKept() int64 {
	const small = 1 << 20
	return small + x.O.Size + int64(len(x.Data.Info))
}

// kept is a scan that was read back.
type kept struct {
	names []byte // table of NameRef and offset in lists
	lists []byte // units of each name: a count, then differences, in ULEB128
	syms  []byte
	recs  [][]byte // by unit
}

// known returns a hash of the image's identity, or nil if it has none. Some devices have other numbers
// when the machine has started anew.
func (x *Index) known() []byte {
	if x.O.Identity == "" {
		return nil
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without one, nothing is there to tell
	sum := sha256.Sum256([]byte(string(boot) + x.O.Identity))
	return sum[:]
}

// keep writes the scan's result.
func (x *Index) keep() error {
	name := x.keptName()
	if name == "" {
		return nil
	}
	contents, err := x.O.Contents()
	if err == nil {
		err = x.O.Changed() // since it was scanned
	}
	if err != nil {
		return err
	}
	body, err := x.encodeScan(contents)
	if err != nil || int64(keptHead+len(body)) > x.maxKept() {
		return err
	}
	head := append([]byte(KeptMagic), make([]byte, keptKnown)...)
	copy(head[len(KeptMagic):], x.known())
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(body, keptCRC))
	dir, err := store.Create(x.O.Dir, keptFiles)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Write(name, head, body); err != nil {
		return err
	}
	return dir.Evict(limitOf(x.O.Limit), name)
}

// encodeScan writes everything after the checksum.
func (x *Index) encodeScan(contents [sha256.Size]byte) ([]byte, error) {
	le := binary.LittleEndian
	var units, recs []byte
	byName := make(map[NameRef][]int)
	for i := range x.Units {
		u := &x.Units[i]
		at := len(recs)
		recs = AppendRecs(recs, u.Recs)
		units = appendHeader(units, u.Unit)
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
	body := contents[:]
	for _, n := range []int{len(x.Units), len(names), len(lists), len(syms), len(recs)} {
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
	name := x.keptName()
	if name == "" {
		return false, nil
	}
	dir, err := store.Open(x.O.Dir, keptFiles)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	_ = dir.Sweep() // of what is left the next process tries again
	anew := func(err error) (bool, error) {
		return false, fmt.Errorf("%s: the kept index is %w; it will be made anew", x.KeptPath(), err)
	}
	f, err := dir.File(name, x.maxKept())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return anew(fmt.Errorf("%w: %w", ErrDamagedIndex, err))
	}
	m, err := mapping.Of(f, x.KeptPath())
	if err != nil {
		return anew(err)
	}
	known := x.known()
	compared := false
	err = mapping.Guard(func() (err error) {
		compared, err = x.readKept(m.Data, known)
		return err
	})
	if err != nil {
		_ = m.Close()
		return anew(err)
	}
	x.keptFile.Store(m)
	store.Used(m.File())
	if !compared && known != nil {
		note(m.File(), known)
	}
	return true, nil
}

// isKnown reports whether the contents of the file with an identity were compared before.
func isKnown(d, known []byte) bool {
	for i := len(KeptMagic); i < keptSum; i += sha256.Size {
		if bytes.Equal(d[i:i+sha256.Size], known) {
			return true
		}
	}
	return false
}

// note writes into an index that the file with an identity has its contents. If it cannot, or is
// killed meanwhile, the contents are hashed again the next time.
func note(index *os.File, known []byte) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", index.Fd()), os.O_WRONLY, 0) // the file, whatever its name is now
	if err != nil {
		return
	}
	defer f.Close()
	slot := int(known[0]) % (keptKnown / sha256.Size) // whichever was there
	_, _ = f.WriteAt(known, int64(len(KeptMagic)+slot*sha256.Size))
}

// readKept reads a kept file. known is a hash of the image's identity; compared is whether the contents of
// that were compared before.
func (x *Index) readKept(d, known []byte) (compared bool, err error) {
	if len(d) < keptHead+keptContents+keptCounts || string(d[:len(KeptMagic)]) != KeptMagic {
		return false, ErrDamagedIndex
	}
	b := bin.Reader{D: d, P: keptHead}
	contents := b.Bytes(keptContents)
	count, names, lists, syms, recs := b.U64(), b.U64(), b.U64(), b.U64(), b.U64()
	size := uint64(b.P) + count*keptUnitSize
	for _, n := range []uint64{count, names, lists, syms, recs} {
		if n > uint64(len(d)) {
			return false, ErrDamagedIndex
		}
	}
	if size+names+lists+syms+recs != uint64(len(d)) || names%keptNameSize != 0 {
		return false, ErrDamagedIndex
	}
	if crc32.Checksum(d[keptHead:], keptCRC) != binary.LittleEndian.Uint32(d[keptSum:]) {
		return false, ErrDamagedIndex
	}
	if compared = isKnown(d, known); !compared {
		own, err := x.O.Contents()
		if err != nil {
			return false, err
		}
		if !bytes.Equal(contents, own[:]) {
			return false, errors.New("of an image with other contents")
		}
	}
	table := bin.Reader{D: b.Bytes(count * keptUnitSize)}
	k := &kept{names: b.Bytes(names), lists: b.Bytes(lists), syms: b.Bytes(syms), recs: make([][]byte, count)}
	r := bin.Reader{D: b.Bytes(recs)}
	if x.Data.Ready() {
		return compared, x.takeKept(k, &table, &r)
	}
	units := make([]dw.Unit, count)
	for i := range units {
		u := &units[i]
		u.Data, u.Number, u.Recalled = x.Data, i, true
		u.Off, u.End, u.First, u.AbbrevOff, u.Signature, u.TypeOff = table.U64(), table.U64(), table.U64(), table.U64(), table.U64(), table.U64()
		k.recs[i] = r.Bytes(uint64(table.U32()))
		u.Version, u.AddrSize, u.Kind, u.Dwarf64 = uint16(table.U8()), table.U8(), table.U8(), table.U8() != 0
		if u.End > uint64(len(x.Data.Info)) || u.First >= u.End || u.Off >= u.First || i > 0 && u.Off < units[i-1].End {
			return false, ErrDamagedIndex
		}
	}
	if b.Bad || r.Bad || table.Bad || r.P != len(r.D) {
		return false, ErrDamagedIndex
	}
	if !x.O.UseSymbols(k.syms) {
		return false, ErrDamagedIndex
	}
	x.Kept, x.Data.Units = k, units
	x.addUnits()
	return compared, nil
}

// takeKept takes a kept scan of units that have been read: those of several files are, to know the files.
func (x *Index) takeKept(k *kept, table, r *bin.Reader) error {
	if len(k.recs) != len(x.Data.Units) {
		return ErrDamagedIndex
	}
	for i := range k.recs {
		b := table.Bytes(keptUnitSize)
		h := bin.Reader{D: b, P: keptUnitSize - 8}
		if len(b) != keptUnitSize || !bytes.Equal(b[:h.P], appendHeader(nil, &x.Data.Units[i])[:h.P]) {
			return ErrDamagedIndex
		}
		k.recs[i] = r.Bytes(uint64(h.U32()))
	}
	if r.Bad || r.P != len(r.D) || !x.O.UseSymbols(k.syms) {
		return ErrDamagedIndex
	}
	x.Kept = k
	x.addUnits()
	return nil
}

// appendHeader encodes a unit's header, without the length of its records and its kinds.
func appendHeader(b []byte, u *dw.Unit) []byte {
	for _, v := range [...]uint64{u.Off, u.End, u.First, u.AbbrevOff, u.Signature, u.TypeOff} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
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
	return sel, x.largestFirst(units)
}

// functions returns all names, sorted.
func (k *kept) functions(x *Index) []string {
	names := make([]string, len(k.names)/keptNameSize)
	for i := range names {
		names[i] = x.NameOf(k.name(i))
	}
	return names
}

// recallRecords decodes the unit's records in a kept scan, and checks that each is of an entry for a
// function.
func (u *Unit) recallRecords() error {
	damaged := func() error {
		return fmt.Errorf("%s: the kept index is %w: delete it, or do without", u.Index.KeptPath(), ErrDamagedIndex)
	}
	recs, ok := DecodeRecs(u.Index.Kept.recs[u.Number])
	if !ok {
		return damaged()
	}
	if err := u.Load(); err != nil {
		return err
	}
	for i := range recs {
		r := &recs[i]
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil || !e.IsFunction(r.Flags&Inlined != 0, r.Flags&HasPC != 0) || r.Root >= 0 && recs[r.Root].Root != r.Root {
			return damaged()
		}
	}
	u.Recs = recs
	return nil
}

// KeptFile is one kept scan.
type KeptFile struct {
	Key        string
	Size       int64 // bytes
	Used       time.Time
	Unfinished bool // it is being written, or was when its writer was killed
}

// ListKept returns the scans kept in a directory, the most recently used one first.
func ListKept(dir string) ([]KeptFile, error) {
	d, err := store.Open(dir, keptFiles)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.List()
	var out []KeptFile
	for _, e := range entries {
		out = append(out, KeptFile{strings.TrimSuffix(e.Name, KeptSuffix), e.Size, e.Used, e.Unfinished})
	}
	return out, err
}

// ClearKept removes all scans kept in a directory.
func ClearKept(dir string) error {
	d, err := store.Open(dir, keptFiles)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Clear()
}

// defaultLimit is the size in bytes that all kept scans may have together.
const defaultLimit = 1 << 30

func limitOf(limit int64) int64 {
	if limit == 0 {
		return defaultLimit
	}
	return limit
}

// Evict removes the least recently used files until the others take limit bytes or
// less. It never removes the file at path.
func Evict(dir string, limit int64, path string) error {
	d, err := store.Open(dir, keptFiles)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Evict(limitOf(limit), filepath.Base(path))
}
