package sealed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
)

// File is an open section. Several goroutines may use it.
type File struct {
	kind   *Kind
	path   string
	stored []byte
	parts  []Part

	size int      // of the header and of all parts
	at   []uint32 // where pages are in the section; and the end

	mapped  *Checked                 // the parts, if they are used where they are
	decoded []atomic.Pointer[[]byte] // or else pages that have been asked for
	mu      [16]sync.Mutex           // of the page with a number, modulo that many, while it is decompressed
	room    room
}

// Part is where a part is, and how many records it has. Offsets are as those in errors.
type Part struct{ From, To, N int }

// Errorf returns an error about damage at an offset.
func (f *File) Errorf(off int, format string, args ...any) error {
	return fmt.Errorf("%s: %s+%#x: %w: %s", f.path, f.kind.Section, off, f.kind.Damaged, fmt.Sprintf(format, args...))
}

// A section is at most maxSize bytes when it is not compressed, and no more than maxRatio times what it is: what is compressed
// best, addresses of a large function, is so to a fifth.
const (
	maxSize  = 1<<31 - 1 // what an int has on machines of 32 bits
	maxRatio = 100
)

// Open opens a section. Nothing is read but its header and the table of pages; data must not change. Errors give path.
func (k *Kind) Open(data []byte, path string) (*File, error) {
	f := &File{kind: k, path: path, stored: data}
	le := binary.LittleEndian
	if len(data) < atSum || !bytes.HasPrefix(data, []byte(k.Magic)) {
		return nil, f.Errorf(0, "it does not begin as %s does", k.What)
	}
	if v := le.Uint32(data[atVersion:]); v != k.Version {
		return nil, fmt.Errorf("%s: %s+%#x: %s has version %d of the format, and this program reads version %d: make it anew", path, k.Section, atVersion, k.What, v, k.Version)
	}
	if len(data) < HeaderSize || le.Uint32(data[atHeader:]) != HeaderSize {
		return nil, f.Errorf(atHeader, "the header has another size than %d bytes, or is cut short", HeaderSize)
	}
	if n := le.Uint64(data[atSize:]); n != uint64(len(data)) {
		return nil, f.Errorf(atSize, "it says that it has %d bytes, and has %d", n, len(data))
	}
	if le.Uint32(data[atHeadSum:]) != headSum(data) {
		return nil, f.Errorf(atHeadSum, "the checksum of the header is wrong")
	}
	at := HeaderSize
	f.parts = make([]Part, len(k.Parts))
	for i := range f.parts {
		size, n := int64(le.Uint32(data[AtParts+8*i:])), int64(le.Uint32(data[AtParts+8*i+4:]))
		if size > maxSize-int64(at) || n > 8*size || n > maxSize {
			return nil, f.Errorf(AtParts+8*i, "%s do not fit into the section", k.Parts[i])
		}
		f.parts[i] = Part{at, at + int(size), int(n)}
		at += int(size)
	}
	return f, f.readPages(at)
}

// readPages reads the table of pages; size is that of the header and of all parts.
func (f *File) readPages(size int) error {
	le := binary.LittleEndian
	pages := pagesOf(size - HeaderSize)
	if size > maxRatio*len(f.stored) || pages > (len(f.stored)-HeaderSize)/pageEntry {
		return f.Errorf(HeaderSize, "its parts have %d bytes, which it cannot have", size)
	}
	at := HeaderSize + pages*pageEntry
	f.at = make([]uint32, 0, pages+1)
	for p := range pages {
		f.at = append(f.at, uint32(at))
		n := int(le.Uint32(f.stored[HeaderSize+p*pageEntry:]))
		most := min(PageSize, size-HeaderSize-p*PageSize)
		if n > most || f.kind.Mapped && n != most || n > len(f.stored)-at {
			return f.Errorf(HeaderSize+p*pageEntry, "page %d is outside the section", p)
		}
		at += n
	}
	f.at = append(f.at, uint32(at))
	if at != len(f.stored) {
		return f.Errorf(at, "there are %d bytes after the last page", len(f.stored)-at)
	}
	f.size = size
	if !f.kind.Mapped {
		f.decoded = make([]atomic.Pointer[[]byte], pages)
		return nil
	}
	f.mapped = NewChecked(f.stored[f.at[0]:], func(p int) uint32 { return f.sumOf(p) }, func(from, to int) error {
		return f.Errorf(int(f.at[0])+from, "the checksum of %d bytes is wrong", to-from)
	})
	return nil
}

// sumOf returns the checksum that a page is to have.
func (f *File) sumOf(p int) uint32 {
	return binary.LittleEndian.Uint32(f.stored[HeaderSize+p*pageEntry+4:])
}

// Header returns the header.
func (f *File) Header() []byte { return f.stored[:HeaderSize] }

// Part returns where a part is.
func (f *File) Part(i int) Part { return f.parts[i] }

// Size returns where the last part ends.
func (f *File) Size() int { return f.size }

// Stored returns how many bytes the section has for a part, or for the header and the table of pages if it is -1; a page's are
// shared out evenly.
func (f *File) Stored(part int) int {
	if part < 0 {
		return HeaderSize + (len(f.at)-1)*pageEntry
	}
	p := f.parts[part]
	return f.storedBefore(p.To) - f.storedBefore(p.From)
}

func (f *File) storedBefore(at int) int {
	p := (at - HeaderSize) / PageSize
	lo := HeaderSize + p*PageSize
	n := int(f.at[p] - f.at[0])
	if at > lo {
		n += (at - lo) * int(f.at[p+1]-f.at[p]) / (min(lo+PageSize, f.size) - lo)
	}
	return n
}

// Bytes returns a range of the parts. It may be a copy.
func (f *File) Bytes(from, to int) ([]byte, error) {
	if from < HeaderSize || to > f.size || from > to {
		return nil, f.Errorf(from, "it is outside the parts")
	}
	from, to = from-HeaderSize, to-HeaderSize
	if f.mapped != nil {
		return f.mapped.Bytes(from, to)
	}
	p := from / PageSize
	if from == to || (to-1)/PageSize == p {
		if from == to {
			return nil, nil
		}
		page, err := f.page(p)
		if err != nil {
			return nil, err
		}
		return page[from-p*PageSize : to-p*PageSize : to-p*PageSize], nil
	}
	out := make([]byte, 0, to-from)
	for ; from < to; p++ {
		page, err := f.page(p)
		if err != nil {
			return nil, err
		}
		end := min(to, (p+1)*PageSize)
		out = append(out, page[from-p*PageSize:end-p*PageSize]...)
		from = end
	}
	return out, nil
}

// Page returns what one page has of a range, from its beginning on: of a long one not all has to be in one piece.
func (f *File) Page(from, to int) ([]byte, error) {
	return f.Bytes(from, min(to, from+PageSize-(from-HeaderSize)%PageSize))
}

// page returns a page that is compressed, as it is without that.
func (f *File) page(p int) ([]byte, error) {
	if d := f.decoded[p].Load(); d != nil {
		return *d, nil
	}
	mu := &f.mu[p%len(f.mu)]
	mu.Lock()
	defer mu.Unlock()
	if d := f.decoded[p].Load(); d != nil {
		return *d, nil
	}
	at := int(f.at[p])
	stored := f.stored[at:f.at[p+1]]
	if Sum(stored) != f.sumOf(p) {
		return nil, f.Errorf(at, "the checksum of %d bytes is wrong", len(stored))
	}
	page := stored
	if size := min(PageSize, f.size-HeaderSize-p*PageSize); len(stored) != size {
		page = f.room.take(size)
		if err := decompress(page, stored); err != nil {
			return nil, f.Errorf(at, "%v", err)
		}
	}
	f.decoded[p].Store(&page)
	return page, nil
}

// Check checks the whole section against its checksum.
func (f *File) Check() error {
	if sum := sha256.Sum256(f.stored[atHeadSum:]); !bytes.Equal(sum[:], f.stored[atSum:atSum+sha256.Size]) {
		return f.Errorf(atSum, "the checksum of the whole section is wrong")
	}
	return nil
}
