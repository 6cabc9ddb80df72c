package sealed

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// Pages are zstd frames (RFC 8878) without a checksum of their own, or as they are if that is not shorter. So a page that has
// all of its bytes is not compressed.

// packers has encoders. One takes 34 MB, and is forgotten when nothing has been written for a while.
var packers = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(PageSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}}

var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(1<<20))
	if err != nil {
		panic(err)
	}
	return d
})

func compress(e *zstd.Encoder, page []byte) []byte {
	if c := e.EncodeAll(page, nil); len(c) < len(page) {
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
			e := packers.Get().(*zstd.Encoder)
			defer packers.Put(e)
			for i := next.Add(1) - 1; i < int64(len(pages)); i = next.Add(1) - 1 {
				pages[i] = compress(e, pages[i])
			}
		})
	}
	wg.Wait()
}

// decompress fills a page.
func decompress(to, page []byte) error {
	if len(page) == len(to) {
		copy(to, page)
		return nil
	}
	d, err := unpacker().DecodeAll(page, to[:0:len(to)])
	switch {
	case err != nil:
		return fmt.Errorf("a page cannot be decompressed: %w", err)
	case len(d) != len(to) || &d[0] != &to[0]:
		return errors.New("a page has another size than the others")
	}
	return nil
}
