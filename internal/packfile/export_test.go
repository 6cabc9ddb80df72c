package packfile

import (
	"encoding/binary"
	"hash/crc32"
)

// Reseal makes all checksums of a section right again, as somebody would who has changed it. It reports whether there is room
// for them.
func Reseal(d []byte) bool {
	if len(d) < headerSize {
		return false
	}
	le := binary.LittleEndian
	size := headerSize
	for i := range numParts {
		size += int(le.Uint32(d[atParts+8*i:]))
	}
	pages := (size - headerSize + pageSize - 1) / pageSize
	at := headerSize + pages*pageEntry
	for p := range pages {
		if headerSize+(p+1)*pageEntry > len(d) {
			break
		}
		n := int(le.Uint32(d[headerSize+p*pageEntry:]))
		if at+n > len(d) {
			break
		}
		le.PutUint32(d[headerSize+p*pageEntry+4:], crc32.Checksum(d[at:at+n], castagnoli))
		at += n
	}
	Seal(d, 0, 0, 0, uint64(len(d)))
	return true
}

// Unpacked returns a section whose pages are not compressed, so that a test can change what is in them.
func Unpacked(d []byte) ([]byte, error) {
	f, err := Open(d, "")
	if err != nil {
		return nil, err
	}
	if err := f.need(headerSize, len(f.d)); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	out := append([]byte(nil), d[:headerSize]...)
	for p := headerSize; p < len(f.d); p += pageSize {
		out = le.AppendUint32(out, uint32(min(pageSize, len(f.d)-p)))
		out = le.AppendUint32(out, 0)
	}
	out = append(out, f.d[headerSize:]...)
	le.PutUint64(out[atSize:], uint64(len(out)))
	Reseal(out)
	return out, nil
}
