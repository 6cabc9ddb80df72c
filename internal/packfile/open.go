package packfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
)

// ErrDamaged is wrapped by errors about a pack that is damaged.
var ErrDamaged = errors.New("the pack is damaged")

// File is an open pack. Several goroutines may use it.
type File struct {
	path   string
	stored []byte // the section
	facts  Facts
	parts  [numParts]partAt
	funs   int
	roots  int
	width  int // bits of a name's number

	mu    sync.Mutex
	d     []byte                   // the header's place, and parts, as far as they have been asked for
	pages []atomic.Uint32          // a bit for each page that is in d
	at    []uint32                 // where pages are in the section; and the end
	ids   atomic.Pointer[[]uint32] // see nameIDs
}

// partAt is where a part is in the section, and how many records it has.
type partAt struct{ from, to, n int }

// Part is a part of the section.
type Part struct {
	Name   string
	Bytes  int // when it is not compressed
	Stored int
}

// errorf returns an error about a place in the section.
func (f *File) errorf(off int, format string, args ...any) error {
	return fmt.Errorf("%s: %s+%#x: %w: %s", f.path, Section, off, ErrDamaged, fmt.Sprintf(format, args...))
}

// Open opens the contents of a section. Nothing is read but its header; data must not change. Errors give path.
func Open(data []byte, path string) (*File, error) {
	f := &File{path: path, stored: data}
	le := binary.LittleEndian
	if len(data) < atSum || !bytes.HasPrefix(data, []byte(magic)) {
		return nil, f.errorf(0, "it does not begin as a pack does")
	}
	if v := le.Uint32(data[atVersion:]); v != Version {
		return nil, fmt.Errorf("%s: %s+%#x: the pack has version %d of the format, and this program reads version %d: make it anew", path, Section, atVersion, v, Version)
	}
	if len(data) < headerSize || le.Uint32(data[atHeader:]) != headerSize {
		return nil, f.errorf(atHeader, "the header has another size than %d bytes, or is cut short", headerSize)
	}
	if n := le.Uint64(data[atSize:]); n != uint64(len(data)) {
		return nil, f.errorf(atSize, "it says that it has %d bytes, and has %d", n, len(data))
	}
	if le.Uint32(data[atHeadSum:]) != headSum(data) {
		return nil, f.errorf(atHeadSum, "the checksum of the header is wrong")
	}
	flags := le.Uint32(data[atFlags:])
	count := func(i int) int { return int(le.Uint32(data[atCounts+4*i:])) }
	f.facts = Facts{
		Version: Version, Sites: count(0), Inlined: count(1), Values: count(2), Blocks: count(3), Kernel: flags&flagKernel != 0, Checked: flags&flagChecked != 0,
		Types: Types{Base: flags&flagBase != 0, BaseTypes: le.Uint32(data[atBase:]), BaseStrings: le.Uint32(data[atBase+4:])},
	}
	copy(f.facts.Types.BaseSum[:], data[atBase+8:])
	f.funs, f.roots = count(4), count(5)
	at := headerSize
	for i := range f.parts {
		size, n := int(le.Uint32(data[atParts+8*i:])), int(le.Uint32(data[atParts+8*i+4:]))
		if size > maxSize-at || n > 8*size {
			return nil, f.errorf(atParts+8*i, "%s do not fit into the section", partNamesOf[i])
		}
		f.parts[i] = partAt{at, at + size, n}
		at += size
	}
	f.width = bits.Len(uint(f.parts[partNames].n))
	if err := f.readPages(at); err != nil {
		return nil, err
	}
	switch {
	case f.parts[partFunNames].n != f.funs || f.parts[partFunctions].n != f.funs || f.parts[partBlocks].n != f.facts.Blocks || f.roots > f.funs:
		return nil, f.errorf(atCounts, "the counts contradict each other")
	case f.parts[partFunNames].to-f.parts[partFunNames].from != (f.funs*f.width+7)/8:
		return nil, f.errorf(f.parts[partFunNames].from, "there is not a name for each function")
	}
	for _, p := range []int{partTypes, partFrames, partResults} {
		if x := f.parts[p]; x.to-x.from != 4*x.n {
			return nil, f.errorf(x.from, "%s have another size than their number says", partNamesOf[p])
		}
	}
	for p := range numParts {
		if size := offsetSize(p); size != 0 && groups(f.parts[p].n)*size > f.parts[p].to-f.parts[p].from {
			return nil, f.errorf(f.parts[p].from, "%s have no room for their offsets", partNamesOf[p])
		}
	}
	return f, nil
}

// A section is at most maxSize bytes when it is not compressed, and no more than maxRatio times what it is: what is compressed
// best, addresses of a large function, is so to a fifth.
const (
	maxSize  = 1 << 31
	maxRatio = 100
)

// readPages reads the table of pages; size is that of the header and of all parts.
func (f *File) readPages(size int) error {
	le := binary.LittleEndian
	pages := (size - headerSize + pageSize - 1) / pageSize
	if size > maxRatio*len(f.stored) || pages > (len(f.stored)-headerSize)/pageEntry {
		return f.errorf(headerSize, "its parts have %d bytes, which it cannot have", size)
	}
	at := headerSize + pages*pageEntry
	f.at = make([]uint32, 0, pages+1)
	for p := range pages {
		f.at = append(f.at, uint32(at))
		n := int(le.Uint32(f.stored[headerSize+p*pageEntry:]))
		if n > pageSize || n > len(f.stored)-at {
			return f.errorf(headerSize+p*pageEntry, "page %d is outside the section", p)
		}
		at += n
	}
	f.at = append(f.at, uint32(at))
	if at != len(f.stored) {
		return f.errorf(at, "there are %d bytes after the last page", len(f.stored)-at)
	}
	f.d = make([]byte, size)
	f.pages = make([]atomic.Uint32, (pages+31)/32)
	return nil
}

// offsetSize is how many bytes there are for each group of records, or 0 if a part has no groups.
func offsetSize(part int) int {
	switch part {
	case partFunctions, partBlocks:
		return 8
	case partNames, partTexts, partParams, partSigs, partValues, partTuples:
		return 4
	}
	return 0
}

func groups(n int) int { return (n + groupSize - 1) / groupSize }

// Facts returns what the pack says about itself.
func (f *File) Facts() Facts { return f.facts }

// Path returns the path that errors give.
func (f *File) Path() string { return f.path }

// Parts returns the parts of the section, the header first.
func (f *File) Parts() []Part {
	out := []Part{{Name: "header and pages", Bytes: headerSize + len(f.at)*pageEntry - pageEntry, Stored: headerSize + len(f.at)*pageEntry - pageEntry}}
	for i, p := range f.parts {
		out = append(out, Part{partNamesOf[i], p.to - p.from, f.storedSize(p.from) - f.storedSize(p.to)})
		out[len(out)-1].Stored *= -1
	}
	return out
}

// storedSize is how many bytes the section has for what is before a place in the parts; a page's are shared out evenly.
func (f *File) storedSize(at int) int {
	p := (at - headerSize) / pageSize
	lo := headerSize + p*pageSize
	n := int(f.at[p] - f.at[0])
	if at > lo {
		n += (at - lo) * int(f.at[p+1]-f.at[p]) / (min(lo+pageSize, len(f.d)) - lo)
	}
	return n
}

// need reads the pages of a range of the parts.
func (f *File) need(from, to int) error {
	if from < headerSize || to > len(f.d) || from > to {
		return f.errorf(from, "it is outside the parts")
	}
	for p := (from - headerSize) / pageSize; from < to && p <= (to-1-headerSize)/pageSize; p++ {
		if f.pages[p/32].Load()&(1<<(p%32)) == 0 {
			if err := f.readPage(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *File) readPage(p int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[p/32].Load()&(1<<(p%32)) != 0 {
		return nil
	}
	at := int(f.at[p])
	page := f.stored[at:f.at[p+1]]
	if crc32.Checksum(page, castagnoli) != binary.LittleEndian.Uint32(f.stored[headerSize+p*pageEntry+4:]) {
		return f.errorf(at, "the checksum of %d bytes is wrong", len(page))
	}
	lo := headerSize + p*pageSize
	if err := decompress(f.d[lo:min(lo+pageSize, len(f.d))], page); err != nil {
		return f.errorf(at, "%v", err)
	}
	f.pages[p/32].Or(1 << (p % 32))
	return nil
}

// u32 returns an entry of a part of fixed size.
func (f *File) u32(part, i int) (int, error) {
	p := &f.parts[part]
	if i < 0 || i >= p.n {
		return 0, f.errorf(p.from, "number %d of %d %s is asked for", i, p.n, partNamesOf[part])
	}
	at := p.from + 4*i
	if err := f.need(at, at+4); err != nil {
		return 0, err
	}
	return int(binary.LittleEndian.Uint32(f.d[at:])), nil
}

// offset returns where a group of records begins in its part's body, and the number that is kept with it.
func (f *File) offset(part, group int) (off, extra int, err error) {
	size := offsetSize(part)
	at := f.parts[part].from + size*group
	if err := f.need(at, at+size); err != nil {
		return 0, 0, err
	}
	off = int(binary.LittleEndian.Uint32(f.d[at:]))
	if size == 8 {
		extra = int(binary.LittleEndian.Uint32(f.d[at+4:]))
	}
	return off, extra, nil
}

// group returns a reader of a group of records, how many they are, and the number that is kept with it. Errors about it are
// made with failed.
func (f *File) group(part, g int) (r groupReader, extra int, err error) {
	p := &f.parts[part]
	all := groups(p.n)
	if g < 0 || g >= all {
		return r, 0, f.errorf(p.from, "group %d of %d of %s is asked for", g, all, partNamesOf[part])
	}
	body := p.from + offsetSize(part)*all
	from, extra, err := f.offset(part, g)
	if err != nil {
		return r, 0, err
	}
	to := p.to - body
	if g+1 < all {
		if to, _, err = f.offset(part, g+1); err != nil {
			return r, 0, err
		}
	}
	if from > to || to > p.to-body {
		return r, 0, f.errorf(p.from+offsetSize(part)*g, "%s are outside their part", partNamesOf[part])
	}
	if err := f.need(body+from, body+to); err != nil {
		return r, 0, err
	}
	return groupReader{Reader: bin.Reader{D: f.d[body+from : body+to]}, f: f, at: body + from, n: min(groupSize, p.n-g*groupSize)}, extra, nil
}

// groupReader reads a group of records.
type groupReader struct {
	bin.Reader
	f  *File
	at int // where it begins in the section
	n  int // records
}

// failed returns an error about where the reader is.
func (r *groupReader) failed(what string) error {
	return r.f.errorf(r.at+r.P, "%s", what)
}

// check returns an error if something could not be read.
func (r *groupReader) check() error {
	if r.Bad {
		return r.failed("a record is cut short")
	}
	return nil
}

func (r *groupReader) int() int64 {
	u := r.ULEB()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads how many things follow, each of at least size bytes.
func (r *groupReader) count(size int) int {
	n := r.ULEB()
	if n > uint64((len(r.D)-r.P)/size) {
		r.Fail()
		return 0
	}
	return int(n)
}

// index reads a number that is less than n.
func (r *groupReader) index(n int) int {
	v := r.ULEB()
	if v >= uint64(n) {
		r.Fail()
		return 0
	}
	return int(v)
}

// Check checks all of a section against its checksum, and that all of it can be read.
func (f *File) Check() error {
	if sum := sha256.Sum256(f.stored[atHeadSum:]); !bytes.Equal(sum[:], f.stored[atSum:atSum+sha256.Size]) {
		return f.errorf(atSum, "the checksum of the whole section is wrong")
	}
	refs, err := f.List(nil)
	if err != nil {
		return err
	}
	if len(refs) != f.facts.Sites {
		return f.errorf(atCounts, "it says that it has %d sites, and has %d", f.facts.Sites, len(refs))
	}
	return f.Each(refs, func(int, *Site) error { return nil })
}

// CheckFile checks the whole file, which the section is a part of, against the checksums that the section has of the rest. With
// all they are SHA-256, and else CRC-32C, which a reader of the pack can afford: a kernel's .BTF of 4 MB takes a millisecond.
func (f *File) CheckFile(file []byte, all bool) error {
	btf, pack, err := find(file, f.path)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		at    int
		what  string
		parts [][]byte
	}{
		{atRest, "the rest of the file", [][]byte{file[:btf.from], file[btf.to:pack.from], file[pack.to:]}},
		{atBTF, btfSection, [][]byte{file[btf.from:btf.to]}},
	} {
		if !all {
			crc := uint32(0)
			for _, p := range x.parts {
				crc = crc32.Update(crc, castagnoli, p)
			}
			if crc != binary.LittleEndian.Uint32(f.stored[x.at:]) {
				return f.errorf(x.at, "the checksum of %s is wrong", x.what)
			}
			continue
		}
		if _, sum := sums(x.parts...); !bytes.Equal(sum[:], f.stored[x.at+4:x.at+36]) {
			return f.errorf(x.at, "the checksum of %s is wrong", x.what)
		}
	}
	return nil
}

const btfSection = ".BTF"
