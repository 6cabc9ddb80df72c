package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// maxSection bounds a decompressed section, in bytes. The debug information of the
// largest programs has about 10 GB.
const maxSection = 64 << 30

// packing is a way to compress a section.
type packing struct {
	name string
	// ratio bounds how many bytes one compressed byte can stand for. Deflate: 258
	// bytes in 2 bits (RFC 1951). Zstandard: a block of 128 KiB in 4 bytes (RFC 8878).
	ratio uint64
	open  func(r io.Reader, size int) (io.Reader, func(), error) // of size bytes
	// whole decompresses all data at once, up to the capacity of dst. It is nil if
	// that is no faster than reading.
	whole func(dst, d []byte) ([]byte, error)
}

var packings = map[elf.CompressionType]*packing{
	elf.COMPRESS_ZLIB: {name: "zlib", ratio: 258 * 4, open: func(r io.Reader, _ int) (io.Reader, func(), error) {
		z, err := zlib.NewReader(r)
		return z, func() {}, err
	}},
	elf.COMPRESS_ZSTD: {name: "zstd", ratio: 128 << 10 / 4, open: func(r io.Reader, size int) (io.Reader, func(), error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window(size)))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}, whole: func(dst, d []byte) ([]byte, error) {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return z.DecodeAll(d, dst)
	}},
}

// decompress unpacks a section with a compression header (System V gABI, Elf64_Chdr and Elf32_Chdr).
func (src *source) decompress(s *elf.Section, d []byte) ([]byte, error) {
	// type, in the larger one 4 bytes that are reserved, size, alignment
	form := src.form()
	sizeAt, headerSize := uint64(8), uint64(24)
	if !form.wide {
		sizeAt, headerSize = 4, 12
	}
	if uint64(len(d)) < headerSize {
		return nil, src.errorf(s.Name, 0, "the compression header is cut short")
	}
	typ := elf.CompressionType(form.u32(d))
	p := packings[typ]
	if p == nil {
		return nil, src.errorf(s.Name, 0, "unknown compression type %d", uint32(typ))
	}
	return src.unpack(s, p, d[headerSize:], headerSize, form.word(d[sizeAt:]), sizeAt)
}

// decompressOld unpacks a section of the old GNU form: named .zdebug_*, it starts
// with "ZLIB" and the size as 8 big-endian bytes (binutils before 2.26).
func (src *source) decompressOld(s *elf.Section, d []byte) ([]byte, error) {
	if len(d) < 12 || string(d[:4]) != "ZLIB" {
		return nil, src.errorf(s.Name, 0, "invalid compression header")
	}
	return src.unpack(s, packings[elf.COMPRESS_ZLIB], d[12:], 12, binary.BigEndian.Uint64(d[4:12]), 4)
}

// unpack decompresses d, found at an offset in its section, to size bytes, which the
// header gives at sizeAt. A false size is an error, and takes no more memory than the
// data can expand to.
func (src *source) unpack(s *elf.Section, p *packing, d []byte, off, size, sizeAt uint64) ([]byte, error) {
	if size > maxSection || size > (uint64(len(d))+1)*p.ratio {
		return nil, src.errorf(s.Name, sizeAt, "the header announces %d bytes, more than %d bytes of %s can hold", size, len(d), p.name)
	}
	// If the header claims much more than is usual, read in steps, so that memory grows with the
	// data.
	likely := unpackTimes * uint64(len(d))
	if p.whole != nil && size <= likely {
		src.budget.read.Add(uint64(len(d)))
		if err := src.budget.spend(int(size)); err != nil {
			return nil, src.errorf(s.Name, sizeAt, "%v", err)
		}
		out, err := p.whole(make([]byte, 0, size), d)
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded):
			return nil, src.errorf(s.Name, sizeAt, "the header announces %d bytes, the data holds more", size)
		case err != nil:
			return nil, src.errorf(s.Name, off, "decompress: %v", err)
		case uint64(len(out)) != size:
			return nil, src.errorf(s.Name, sizeAt, "the header announces %d bytes, the data holds %d", size, len(out))
		}
		return slices.Clip(out), nil
	}
	r, done, err := p.open(&from{bytes.NewReader(d), src.budget}, len(d))
	if err != nil {
		return nil, src.errorf(s.Name, off, "decompress: %v", err)
	}
	defer done()
	out := make([]byte, 0, min(size, likely))
	for {
		if len(out) == cap(out) {
			if uint64(len(out)) >= size {
				break
			}
			out = slices.Grow(out, int(min(uint64(len(out)), size-uint64(len(out))))+1)
		}
		n, err := r.Read(out[len(out):min(cap(out), int(size))])
		out = out[:len(out)+n]
		if err := src.budget.spend(n); err != nil {
			return nil, src.errorf(s.Name, sizeAt, "%v", err)
		}
		if err == io.EOF || uint64(len(out)) == size {
			break
		}
		if err != nil {
			return nil, src.errorf(s.Name, off, "decompress: %v", err)
		}
	}
	if uint64(len(out)) != size {
		return nil, src.errorf(s.Name, sizeAt, "the header announces %d bytes, the data holds %d", size, len(out))
	}
	// Reading on to the end also checks the checksum.
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n != 0:
		return nil, src.errorf(s.Name, sizeAt, "the header announces %d bytes, the data holds more", size)
	case err != io.EOF:
		return nil, src.errorf(s.Name, off, "decompress: %v", err)
	}
	return slices.Clip(out), nil
}
