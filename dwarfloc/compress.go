package dwarfloc

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"
)

// zdebugData decompresses a section of the old GNU form: named .zdebug_*, it
// starts with "ZLIB" and the size as 8 big-endian bytes (binutils before 2.26).
func (img *Image) zdebugData(data []byte, s *elf.Section) ([]byte, error) {
	d, err := img.sectionData(data, s)
	if err != nil {
		return nil, err
	}
	if len(d) < 12 || string(d[:4]) != "ZLIB" {
		return nil, img.errorf(s.Name, 0, "invalid compression header")
	}
	size := binary.BigEndian.Uint64(d[4:12])
	r, err := zlib.NewReader(bytes.NewReader(d[12:]))
	if err != nil {
		return nil, img.errorf(s.Name, 12, "decompress: %v", err)
	}
	// Reading one byte more than announced finds a header that lies; memory
	// follows what the stream really holds, not what the header says.
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(r, int64(min(size, 1<<40))+1))
	if err != nil {
		return nil, img.errorf(s.Name, 12, "decompress: %v", err)
	}
	if uint64(n) != size {
		return nil, img.errorf(s.Name, 4, "the header announces %d bytes, the data holds %d", size, n)
	}
	return slices.Clip(out.Bytes()), nil // nameRef goes by the capacity
}
