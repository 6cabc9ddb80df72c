package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var errXZ = errors.New("damaged: it has no footer, index or blocks where the format has them")

// checkXZ looks at the dictionaries that a file's blocks ask for: the decoder allocates them before it
// has read anything else. The format: https://tukaani.org/xz/xz-file-format.txt, sections 2 to 4. A
// file with a second stream, as of two files one after the other, is not found to be one.
func checkXZ(d []byte) error {
	const headerSize, footerSize = 12, 12
	d = bytes.TrimRight(d, "\x00") // padding
	if len(d) < headerSize+footerSize || string(d[len(d)-2:]) != "YZ" {
		return errXZ
	}
	footer := d[len(d)-footerSize:]
	indexSize := (uint64(binary.LittleEndian.Uint32(footer[4:])) + 1) * 4
	if indexSize > uint64(len(d)-headerSize-footerSize) {
		return errXZ
	}
	blocks := d[headerSize : uint64(len(d)-footerSize)-indexSize]
	index := d[uint64(len(d)-footerSize)-indexSize : len(d)-footerSize]
	if index[0] != 0 {
		return errXZ
	}
	index = index[1:]
	n, ok := xzNumber(&index)
	for ; ok && n > 0; n-- {
		size, ok1 := xzNumber(&index)
		_, ok2 := xzNumber(&index)
		size = (size + 3) &^ 3
		if !ok1 || !ok2 || size == 0 || size > uint64(len(blocks)) {
			return errXZ
		}
		if err := checkXZBlock(blocks[:size], len(d)); err != nil {
			return err
		}
		blocks = blocks[size:]
	}
	if !ok || len(blocks) > 0 {
		return errXZ
	}
	return nil
}

// checkXZBlock looks at the filters of one block, of a file of some bytes.
func checkXZBlock(b []byte, file int) error {
	head := (int(b[0]) + 1) * 4
	if head > len(b) || head < 8 {
		return errXZ
	}
	flags, rest := b[1], b[2:head]
	for _, has := range []byte{0x40, 0x80} { // the sizes, packed and unpacked
		if flags&has != 0 {
			if _, ok := xzNumber(&rest); !ok {
				return errXZ
			}
		}
	}
	for range flags&3 + 1 {
		id, ok1 := xzNumber(&rest)
		size, ok2 := xzNumber(&rest)
		if !ok1 || !ok2 || size > uint64(len(rest)) {
			return errXZ
		}
		const lzma2 = 0x21
		if id == lzma2 && size == 1 {
			bits := rest[0] & 0x3f
			if bits > 40 {
				return errXZ
			}
			dictionary := uint64(2|bits&1) << (bits/2 + 11)
			// "xz -9" asks for 64 MiB whatever it packs.
			if most := max(64<<20, window(file)); dictionary > most {
				return fmt.Errorf("it asks for a dictionary of %d bytes, and has %d: at most %d are given", dictionary, file, most)
			}
		}
		rest = rest[size:]
	}
	return nil
}

// xzNumber reads a number of 7 bits a byte.
func xzNumber(d *[]byte) (uint64, bool) {
	n, size := binary.Uvarint(*d)
	if size <= 0 {
		return 0, false
	}
	*d = (*d)[size:]
	return n, true
}
