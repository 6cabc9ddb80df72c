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
		if err := checkXZBlock(blocks[:size], xzCheckSizes[d[7]&0xf], len(d)); err != nil {
			return err
		}
		blocks = blocks[size:]
	}
	if !ok || len(blocks) > 0 {
		return errXZ
	}
	return nil
}

// xzCheckSizes are the bytes of the checksum that ends a block, by its kind (section 2.1.1.2).
var xzCheckSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// checkXZBlock looks at the filters of one block, of a file of some bytes, and at where its contents
// end: the decoder goes by that, and would find another block there that the index does not have.
func checkXZBlock(b []byte, check, file int) error {
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
	contents, known := b[head:], false
	for range flags&3 + 1 {
		id, ok1 := xzNumber(&rest)
		size, ok2 := xzNumber(&rest)
		if !ok1 || !ok2 || size > uint64(len(rest)) {
			return errXZ
		}
		const lzma2 = 0x21
		if known = id == lzma2 && size == 1; known {
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
	if !known {
		return nil // the decoder refuses the block
	}
	end, ok := lzma2End(contents)
	if left := len(contents) - end - check; !ok || left < 0 || left > 3 {
		return errXZ
	}
	return nil
}

// lzma2End returns where LZMA2 data end. They are chunks, which say how long they are (the comment of
// lzma2_decode in liblzma/lzma/lzma2_decoder.c).
func lzma2End(d []byte) (end int, ok bool) {
	for end < len(d) {
		control, rest := d[end], d[end:]
		switch {
		case control == 0:
			return end + 1, true
		case control <= 2 && len(rest) >= 3: // not compressed
			end += 3 + int(binary.BigEndian.Uint16(rest[1:])) + 1
		case control >= 0x80 && len(rest) >= 5:
			end += 5 + int(binary.BigEndian.Uint16(rest[3:])) + 1
			if control >= 0xc0 {
				end++ // properties
			}
		default:
			return 0, false
		}
	}
	return 0, false
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
