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

	mu    sync.Mutex
	d     []byte          // the header's place, and parts, as far as they have been asked for
	pages []atomic.Uint32 // a bit for each page that is in d
	at    []uint32        // where pages are in the section; and the end
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
	maxSize  = 1 << 31
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
		size, n := int(le.Uint32(data[AtParts+8*i:])), int(le.Uint32(data[AtParts+8*i+4:]))
		if size > maxSize-at || n > 8*size {
			return nil, f.Errorf(AtParts+8*i, "%s do not fit into the section", k.Parts[i])
		}
		f.parts[i] = Part{at, at + size, n}
		at += size
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
	f.pages = make([]atomic.Uint32, (pages+31)/32)
	if f.kind.Mapped {
		f.d = f.stored[pages*pageEntry:] // so that parts are where they are said to be
	} else {
		f.d = make([]byte, size)
	}
	return nil
}

// Header returns the header.
func (f *File) Header() []byte { return f.stored[:HeaderSize] }

// Part returns where a part is.
func (f *File) Part(i int) Part { return f.parts[i] }

// Size returns where the last part ends.
func (f *File) Size() int { return len(f.d) }

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
		n += (at - lo) * int(f.at[p+1]-f.at[p]) / (min(lo+PageSize, len(f.d)) - lo)
	}
	return n
}

// Bytes returns a range of the parts.
func (f *File) Bytes(from, to int) ([]byte, error) {
	if from < HeaderSize || to > len(f.d) || from > to {
		return nil, f.Errorf(from, "it is outside the parts")
	}
	for p := (from - HeaderSize) / PageSize; from < to && p <= (to-1-HeaderSize)/PageSize; p++ {
		if f.pages[p/32].Load()&(1<<(p%32)) == 0 {
			if err := f.readPage(p); err != nil {
				return nil, err
			}
		}
	}
	return f.d[from:to:to], nil
}

// readPage checks a page, and fills its place in f.d.
func (f *File) readPage(p int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[p/32].Load()&(1<<(p%32)) != 0 {
		return nil
	}
	at := int(f.at[p])
	page := f.stored[at:f.at[p+1]]
	if Sum(page) != binary.LittleEndian.Uint32(f.stored[HeaderSize+p*pageEntry+4:]) {
		return f.Errorf(at, "the checksum of %d bytes is wrong", len(page))
	}
	lo := HeaderSize + p*PageSize
	if !f.kind.Mapped {
		if err := decompress(f.d[lo:min(lo+PageSize, len(f.d))], page); err != nil {
			return f.Errorf(at, "%v", err)
		}
	}
	f.pages[p/32].Or(1 << (p % 32))
	return nil
}

// Check checks the whole section against its checksum.
func (f *File) Check() error {
	if sum := sha256.Sum256(f.stored[atHeadSum:]); !bytes.Equal(sum[:], f.stored[atSum:atSum+sha256.Size]) {
		return f.Errorf(atSum, "the checksum of the whole section is wrong")
	}
	return nil
}
