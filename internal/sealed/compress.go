package sealed

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// Pages are zstd frames (RFC 8878) without a checksum of their own, or as they are if a frame would have more than two fifths of their size. A page that
// has all of its bytes is not compressed, and is used where it is: that takes neither time nor memory. Of functions, names, and sites and ways a question
// about some hundred sites reads most pages, and they have half of their size and more in a frame: decompressing them was a quarter of such a question,
// and two fifths of its memory. A kernel's pack is a sixth larger for it. Values have a third.

// packers has encoders: fast ones, which show the pages that are worth it, and those that take the time. One of these takes 34 MB, and is forgotten when
// nothing has been written for a while.
var packers = [...]sync.Pool{quick: encoders(zstd.SpeedFastest), thorough: encoders(zstd.SpeedBestCompression)}

const quick, thorough = 0, 1

func encoders(l zstd.EncoderLevel) sync.Pool {
	return sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(PageSize), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	}}
}

// unpacker has a decoder for each processor, which is made when one is asked for.
var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(1<<20))
	if err != nil {
		panic(err)
	}
	return d
})

// packer compresses pages one after the other.
type packer struct {
	encoders [len(packers)]*zstd.Encoder // those that were needed
	memory   []byte
}

func (p *packer) encoder(which int) *zstd.Encoder {
	if p.encoders[which] == nil {
		p.encoders[which] = packers[which].Get().(*zstd.Encoder)
	}
	return p.encoders[which]
}

// done gives the encoders back.
func (p *packer) done() {
	for i, e := range p.encoders {
		if e != nil {
			packers[i].Put(e)
		}
	}
}

// compress returns a page's frame, or the page. Of the pages of a pack of Debian's 6.1 kernel one in twenty has a frame, and none of these has more than half of
// its size by the fast encoder: where that leaves more than three fifths, the thorough one, which takes thirty times as long, is not asked.
func (p *packer) compress(page []byte) []byte {
	if p.memory = p.encoder(quick).EncodeAll(page, p.memory[:0]); len(p.memory) > len(page)*3/5 {
		return page
	}
	if c := p.encoder(thorough).EncodeAll(page, nil); len(c) <= len(page)*2/5 {
		return c
	}
	return page
}

// compressAll compresses each of the pages, on all processors.
func compressAll(pages [][]byte) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(pages)) {
		wg.Go(func() {
			var p packer
			defer p.done()
			for i := next.Add(1) - 1; i < int64(len(pages)); i = next.Add(1) - 1 {
				pages[i] = p.compress(pages[i])
			}
		})
	}
	wg.Wait()
}

// overrun is how many bytes after a page the decoder may write to: it then copies 16 bytes at once, and needs a fifth less time.
const overrun = 16

// room is memory for pages. Several goroutines may use it.
type room struct {
	mu   sync.Mutex
	left []byte
}

// pagesOfRoom is for how many pages memory is allocated at once.
const pagesOfRoom = 8

// take returns memory for n bytes, after which so many can be overrun.
func (r *room) take(n int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) < n+overrun {
		r.left = make([]byte, pagesOfRoom*(PageSize+overrun))
	}
	page := r.left[: n : n+overrun]
	r.left = r.left[n+overrun:]
	return page
}

// decompress fills a page, which may be overrun, from one that is compressed.
func decompress(to, page []byte) error {
	d, err := unpacker().DecodeAll(page, to[:0])
	switch {
	case err != nil:
		return fmt.Errorf("a page cannot be decompressed: %w", err)
	case len(d) != len(to) || &d[0] != &to[0]:
		return errors.New("a page has another size than the others")
	}
	return nil
}
