// Package elfnote reads ELF notes, from a file's note section or from /sys/kernel/notes.
package elfnote

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
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
	return hex.EncodeToString(find(notes, order, "GNU\x00", ntGNUBuildID, func(d []byte) bool { return len(d) > 0 && len(d) <= maxBuildID }))
}

// buildSalt is LINUX_ELFNOTE_BUILD_SALT of include/linux/build-salt.h.
const buildSalt = 0x100

// BuildSalt returns the text that a kernel's configuration sets so that no two have one build ID, or "". It is the release in kernels
// of Debian and Fedora.
func BuildSalt(notes []byte, order binary.ByteOrder) string {
	d := find(notes, order, "Linux\x00", buildSalt, func(d []byte) bool { return len(d) > 1 })
	return string(bytes.TrimRight(d, "\x00"))
}

// find returns the contents of the first note of an owner and type that is good, or nil.
func find(notes []byte, order binary.ByteOrder, owner string, kind uint32, good func(desc []byte) bool) (found []byte) {
	stop := errors.New("found")
	_, _ = Each(notes, order, func(_ int, name string, is uint32, desc []byte) error {
		if is == kind && name == owner && good(desc) {
			found = desc
			return stop
		}
		return nil
	})
	return found
}

// Each calls f for each note, with its offset, until f returns an error, which it returns. end is the offset after the last note that is whole.
func Each(notes []byte, order binary.ByteOrder, f func(off int, owner string, kind uint32, desc []byte) error) (end int, err error) {
	const headerSize = 12
	for left := notes; len(left) >= headerSize; {
		nameSize, descSize, is := order.Uint32(left), order.Uint32(left[4:]), order.Uint32(left[8:])
		name, rest, ok := field(left[headerSize:], nameSize)
		if !ok {
			break
		}
		desc, rest, ok := field(rest, descSize)
		if !ok {
			break
		}
		if err := f(end, string(name), is, desc); err != nil {
			return end, err
		}
		left, end = rest, len(notes)-len(rest)
	}
	return end, nil
}

// field splits off n bytes, which are padded to a multiple of 4.
func field(d []byte, n uint32) (f, rest []byte, ok bool) {
	if uint64(n) > uint64(len(d)) {
		return nil, nil, false
	}
	padded := min((uint64(n)+3)&^3, uint64(len(d)))
	return d[:n], d[padded:], true
}
