package index

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/radix"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
	"github.com/bpfprologue/bpfprologue/internal/store"
)

// A scan's result can be kept in a directory, one file per image, so that the next
// query on the same image needs no scan. A file is named after the image's build ID
// and the format, which is that of packs (package sealed): a header with a hash of the contents that were scanned, and parts:
//
//   - the units,
//   - each unit's records,
//   - each function name, sorted, with the units that have sites of it,
//   - the code symbols, by address,
//   - where call frame information is,
//   - what answers have derived of each unit, and of the image: see Derive,
//   - where the image was.
//
// After the section are hashes of the identities of files that were found to have those contents.
//
// All are tables that are used in place: a query touches only the units
// of its answer in .debug_info. Package store writes and opens the files, so several processes may do so at once,
// and any file may be deleted at any time.
//
// A build ID is what the maker of a file says. So an index is used for a file only if the hash of the
// file's own contents is the one in the index. To hash a kernel takes a tenth of a second; therefore
// the identity of the file (device, inode, size, times) is noted then, and while that is the same the
// contents are not hashed again. An image that others can write to is not kept at all: they could
// change it while it is hashed or scanned, and change it back. Neither the scan of a hostile copy nor the
// index of one can then be an answer about the genuine image.
//
// Most of an index is checked against its checksums when it is opened; records, frames and what is derived when they are read, and if
// they are damaged then, they are found again in the image, and the index is made anew for the next query. What is used of it
// is compared with the image: units have the headers that they are said to have, records are functions, and frames begin where they
// are said to.

// KeptSuffix is that of the files' names. Another version of the format has another suffix, so
// that two versions do not overwrite each other's files.
const KeptSuffix = ".14.idx"

// KeptKind is what package sealed knows of kept scans.
var KeptKind = sealed.Kind{
	Magic: "bpfindex", Version: 50, Section: "index", What: "the kept index", Damaged: ErrDamagedIndex, Mapped: true,
	Parts: []string{
		keptUnits: "units", keptRecs: "records", keptNames: "names", keptLists: "lists", keptSyms: "symbols", keptFrames: "frames",
		keptEnds: "ends", keptDerived: "derived", keptPath: "path",
	},
}

// Parts of a kept scan.
const (
	keptUnits   = iota // keptUnitSize each
	keptRecs           // of each unit: see AppendRecs; behind a part of whole 8 bytes, so that they can be used in place
	keptNames          // keptNameSize each: NameRef and offset in lists
	keptLists          // units of each name: a count, then differences, in ULEB128
	keptSyms           // as package image writes them
	keptFrames         // as package dw makes the table
	keptEnds           // of the units' blocks in the next part
	keptDerived        // see Derive
	keptPath           // of the image, for people: it may be elsewhere now
	keptParts
)

// isKept reports whether a name is that of a kept file, perhaps of another version.
func isKept(name string) bool {
	name, ok := strings.CutSuffix(name, ".idx")
	dot := strings.LastIndexByte(name, '.')
	return ok && dot > 0 && dot+1 < len(name) && strings.Trim(name[dot+1:], "0123456789") == ""
}

// Sizes in bytes.
const (
	KeptKnown    = 4 * sha256.Size // hashes of identities, after the section
	keptUnitSize = 56
	keptNameSize = 16
)

// ErrDamagedIndex is wrapped by errors about a kept scan that is damaged.
var ErrDamagedIndex = errors.New("the kept index is damaged")

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
// .debug_info, and an index of 17 MB.
func (x *Index) maxKept() int64 {
	const small = 1 << 20
	return small + x.O.Size + int64(len(x.Data.Info))
}

// kept is a scan that was read back.
type kept struct {
	names, lists, syms []byte // parts
	file               *sealed.File
	recs               []int // where each unit's records begin in the file, and the end
	blocks             keptBlocks
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
	if err != nil || int64(sizeOf(body)+KeptKnown) > x.maxKept() {
		return err
	}
	known := make([]byte, KeptKnown)
	copy(known, x.known())
	dir, err := store.Create(x.O.Dir, isKept)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Write(name, append(body, known)...); err != nil {
		return err
	}
	x.keptFrom(contents[:])
	return dir.Evict(limitOf(x.O.Limit), name)
}

// encodeScan makes the section.
func (x *Index) encodeScan(contents [sha256.Size]byte) ([][]byte, error) {
	le := binary.LittleEndian
	count := 0
	for i := range x.Units {
		count += len(x.Units[i].Recs)
	}
	units, recs := make([]byte, 0, len(x.Units)*keptUnitSize), make([]byte, 0, count*packedRec)
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
	radix.By(entries, func(a, b *entry) int {
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
	return KeptKind.Assemble(contents[:], []sealed.Data{
		keptUnits: {Bytes: units, Records: len(x.Units)}, keptNames: {Bytes: names, Records: len(entries)}, keptLists: {Bytes: lists},
		keptSyms: {Bytes: syms}, keptRecs: {Bytes: recs, Records: len(x.Units)}, keptFrames: {Bytes: x.Data.FrameTable()},
		keptPath: {Bytes: []byte(x.place())},
	}), nil
}

// sizeOf returns how many bytes pieces have.
func sizeOf(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// place returns the path of the image, also for another process with another working directory.
func (x *Index) place() string {
	if path, err := filepath.EvalSymlinks(x.Data.Path); err == nil { // that of a process is gone with it
		if path, err = filepath.Abs(path); err == nil {
			return path
		}
	}
	return x.Data.Path
}

// recall uses the image's kept scan and reports whether there was one.
func (x *Index) recall() (bool, error) {
	name := x.keptName()
	if name == "" {
		return false, nil
	}
	dir, err := store.Open(x.O.Dir, isKept)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	_ = dir.Sweep() // of what is left the next process tries again
	anew := func(err error) (bool, error) {
		return false, fmt.Errorf("%w; it will be made anew", err)
	}
	f, err := dir.File(name, x.maxKept())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return anew(fmt.Errorf("%s: %w: %w", x.KeptPath(), ErrDamagedIndex, err))
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
		note(m.File(), int64(len(m.Data)), known)
	}
	return true, nil
}

// isKnown reports whether the contents of the file with an identity were compared before.
func isKnown(hashes, known []byte) bool {
	for h := range slices.Chunk(hashes, sha256.Size) {
		if bytes.Equal(h, known) {
			return true
		}
	}
	return false
}

// note writes into an index that the file with an identity has its contents. If it cannot, or is
// killed meanwhile, the contents are hashed again the next time.
func note(index *os.File, size int64, known []byte) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", index.Fd()), os.O_WRONLY, 0) // the file, whatever its name is now
	if err != nil {
		return
	}
	defer f.Close()
	slot := int64(known[0]) % (KeptKnown / sha256.Size) // whichever was there
	_, _ = f.WriteAt(known, size-KeptKnown+slot*sha256.Size)
}

// readKept reads a kept file. known is a hash of the image's identity; compared is whether the contents of
// that were compared before.
func (x *Index) readKept(d, known []byte) (compared bool, err error) {
	if len(d) < KeptKnown {
		return false, fmt.Errorf("%s: %w: it has %d bytes", x.KeptPath(), ErrDamagedIndex, len(d))
	}
	own := len(d) - KeptKnown
	f, err := KeptKind.Open(d[:own], x.KeptPath())
	if err != nil {
		return false, err
	}
	var parts [keptParts][]byte
	for i := range parts {
		if i == keptDerived || i == keptRecs || i == keptFrames || i == keptPath {
			continue // as it is needed
		}
		p := f.Part(i)
		if parts[i], err = f.Bytes(p.From, p.To); err != nil {
			return false, err
		}
	}
	count := f.Part(keptUnits).N
	if len(parts[keptUnits]) != count*keptUnitSize || len(parts[keptNames])%keptNameSize != 0 {
		return false, f.Errorf(sealed.AtParts, "tables have other sizes than their numbers say")
	}
	if compared = isKnown(d[own:], known); !compared {
		contents, err := x.O.Contents()
		if err != nil {
			return false, err
		}
		if !bytes.HasPrefix(f.Header()[sealed.AtFacts:], contents[:]) {
			return false, fmt.Errorf("%s: the kept index is of an image with other contents", x.KeptPath())
		}
	}
	if len(parts[keptEnds]) > 0 && len(parts[keptEnds]) != 4*(count+imageBlocks) {
		return false, f.Errorf(f.Part(keptEnds).From, "%d blocks, of %d units", len(parts[keptEnds])/4, count)
	}
	x.keptFrom(f.Header()[sealed.AtFacts:][:sha256.Size])
	table := bin.Reader{D: parts[keptUnits]}
	k := &kept{
		names: parts[keptNames], lists: parts[keptLists], syms: parts[keptSyms], file: f, recs: make([]int, 1, count+1),
		blocks: keptBlocks{f, parts[keptEnds], f.Part(keptDerived).From},
	}
	k.recs[0] = f.Part(keptRecs).From
	if x.Data.Ready() {
		return compared, x.takeKept(k, &table)
	}
	units := dw.NewUnits(x.Data, count)
	for i := range units {
		u := &units[i]
		u.Recalled = true
		u.Off, u.End, u.First, u.AbbrevOff, u.Signature, u.TypeOff = table.U64(), table.U64(), table.U64(), table.U64(), table.U64(), table.U64()
		k.recs = append(k.recs, k.recs[i]+int(table.U32()))
		u.Version, u.AddrSize, u.Kind, u.Dwarf64 = uint16(table.U8()), table.U8(), table.U8(), table.U8() != 0
		if u.End > uint64(len(x.Data.Info)) || u.First >= u.End || u.Off >= u.First || i > 0 && u.Off < units[i-1].End {
			return false, f.Errorf(f.Part(keptUnits).From+i*keptUnitSize, "unit %d is outside .debug_info", i)
		}
	}
	if table.Bad || !k.complete() {
		return false, f.Errorf(f.Part(keptRecs).From, "records have another size than the units say")
	}
	if !x.O.UseSymbols(k.syms) {
		return false, f.Errorf(f.Part(keptSyms).From, "the symbols are none")
	}
	x.use(k, units)
	return compared, nil
}

// complete reports whether all units together have as many bytes of records as there are.
func (k *kept) complete() bool {
	at := k.file.Part(keptRecs)
	return slices.IsSorted(k.recs) && k.recs[len(k.recs)-1] == at.To
}

// use takes a kept scan of units.
func (x *Index) use(k *kept, units []dw.Unit) {
	x.Kept, x.Data.Units = k, units
	x.O.UseAsked(x.Derived(len(units) + BlockAsked))
	x.Data.UseFrameTable(func() []byte {
		at := k.file.Part(keptFrames)
		table, err := k.file.Bytes(at.From, at.To)
		if err != nil {
			x.damaged(err)
		}
		return table
	})
	x.addUnits()
}

// takeKept takes a kept scan of units that have been read: those of several files are, to know the files.
func (x *Index) takeKept(k *kept, table *bin.Reader) error {
	f := k.file
	if cap(k.recs)-1 != len(x.Data.Units) {
		return f.Errorf(f.Part(keptUnits).From, "%d units, and the image has %d", cap(k.recs)-1, len(x.Data.Units))
	}
	for i := range x.Data.Units {
		b := table.Bytes(keptUnitSize)
		h := bin.Reader{D: b, P: keptUnitSize - 8}
		if len(b) != keptUnitSize || !bytes.Equal(b[:h.P], appendHeader(nil, &x.Data.Units[i])[:h.P]) {
			return f.Errorf(f.Part(keptUnits).From+i*keptUnitSize, "unit %d is not the image's", i)
		}
		k.recs = append(k.recs, k.recs[i]+int(h.U32()))
	}
	if !k.complete() || !x.O.UseSymbols(k.syms) {
		return f.Errorf(f.Part(keptRecs).From, "records or symbols are none")
	}
	x.use(k, x.Data.Units)
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

// recallRecords takes the unit's records from a kept scan, and checks that each is of an entry for a
// function. ok is false if it is damaged.
func (u *Unit) recallRecords() (ok bool, err error) {
	k := u.Index.Kept
	d, err := k.file.Bytes(k.recs[u.Number], k.recs[u.Number+1])
	if err != nil {
		u.Index.damaged(err)
		return false, nil
	}
	if err := u.Load(); err != nil {
		return false, err
	}
	recs, ok := DecodeRecs(d)
	for i := range recs {
		r := &recs[i]
		ok = ok && u.IsFunctionAt(u.Off+uint64(r.Off), r.Flags&Inlined != 0, r.Flags&HasPC != 0) && (r.Root < 0 || recs[r.Root].Root == r.Root)
	}
	if !ok {
		// The checksums are right: what else it says is not to be believed either.
		return false, fmt.Errorf("%s: %w: delete it, or do without", u.Index.KeptPath(), ErrDamagedIndex)
	}
	u.Recs = recs
	return true, nil
}

// damaged says that the kept scan is damaged, the first time, and removes it: the next query makes it anew.
func (x *Index) damaged(err error) {
	x.damagedOnce.Do(func() {
		x.warn(fmt.Errorf("%w; it will be made anew", err))
		dir, err := store.Open(x.O.Dir, isKept)
		if err == nil {
			err = errors.Join(dir.Remove(x.keptName()), dir.Close())
		}
		x.warn(err)
	})
}
