package image

import (
	"fmt"
	"io"
	"sync/atomic"
)

// A file can be small and decompress to anything: 66 KB of Zstandard to 4 GB. Sections of debug
// information are packed to a third, tables to a twentieth, and zeros, of which files have few, to
// nothing. So what is unpacked for an image may be some times as large as what it was unpacked from, and
// some more.
const (
	unpackFree  = 24 << 20 // bytes
	unpackTimes = 32
)

// budget bounds what is unpacked for an image, all of its sections together, while that goes on: a
// false file is found out when it has taken little more than unpackFree.
type budget struct {
	read, written atomic.Uint64 // bytes
	most          uint64        // Options.MaxUnpacked
}

func newBudget(o *Options) *budget {
	b := &budget{}
	if o != nil {
		b.most = o.MaxUnpacked
	}
	return b
}

// limit returns how much may have been unpacked in all.
func (b *budget) limit() uint64 {
	if b.most > 0 {
		return b.most
	}
	return unpackFree + unpackTimes*b.read.Load()
}

// spend notes that n more bytes were unpacked.
func (b *budget) spend(n int) error {
	if b.written.Add(uint64(n)) > b.limit() {
		return fmt.Errorf("%d bytes unpack to more than %d: if that is what they should be, decompress the file first", b.read.Load(), b.limit())
	}
	return nil
}

// window returns how far back packed data of n bytes may refer, which a decoder must keep.
func window(n int) uint64 { return min(max(8<<20, unpackTimes*uint64(n)), maxWindow) }

// maxWindow is the zstd program's default limit, and twice what "xz -9" asks for.
const maxWindow = 128 << 20

// from counts what a decoder reads.
type from struct {
	io.Reader
	b *budget
}

func (r *from) Read(p []byte) (int, error) {
	// Not more at a time than is needed to see soon that what was read unpacks to too much.
	n, err := r.Reader.Read(p[:min(len(p), 64<<10)])
	r.b.read.Add(uint64(n))
	return n, err
}
