// Package elfnote reads ELF notes, from a file's note section or from /sys/kernel/notes.
package elfnote

import (
	"encoding/binary"
	"encoding/hex"
)

// ntGNUBuildID is NT_GNU_BUILD_ID of elf.h.
const ntGNUBuildID = 3

// maxBuildID is how many bytes a build ID can have. Linkers make 8 to 32, and the kernel knows 20
// (BUILD_ID_SIZE_MAX in include/linux/buildid.h).
const maxBuildID = 64

// BuildID returns the GNU build ID that notes contain, in hexadecimal, or "". It is a note
// with the owner "GNU" and the type NT_GNU_BUILD_ID (System V gABI, "Note Section"), of at most 64 bytes:
// it names files, and is printed.
func BuildID(notes []byte, order binary.ByteOrder) string {
	const headerSize = 12
	for len(notes) >= headerSize {
		nameSize, descSize, kind := order.Uint32(notes), order.Uint32(notes[4:]), order.Uint32(notes[8:])
		name, rest, ok := field(notes[headerSize:], nameSize)
		if !ok {
			return ""
		}
		desc, rest, ok := field(rest, descSize)
		if !ok {
			return ""
		}
		if kind == ntGNUBuildID && string(name) == "GNU\x00" && len(desc) > 0 && len(desc) <= maxBuildID {
			return hex.EncodeToString(desc)
		}
		notes = rest
	}
	return ""
}

// field splits off n bytes, which are padded to a multiple of 4.
func field(d []byte, n uint32) (f, rest []byte, ok bool) {
	if uint64(n) > uint64(len(d)) {
		return nil, nil, false
	}
	padded := min((uint64(n)+3)&^3, uint64(len(d)))
	return d[:n], d[padded:], true
}
