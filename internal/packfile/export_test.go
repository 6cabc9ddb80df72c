package packfile

import (
	"encoding/binary"
	"hash/crc32"
)

// Reseal makes all checksums of a section right again, as somebody would who has changed it. It reports whether the section's
// header names them.
func Reseal(d []byte) bool {
	if len(d) < headerSize {
		return false
	}
	le := binary.LittleEndian
	at := headerSize
	for i := range partSums {
		at += int(le.Uint32(d[atParts+8*i:]))
	}
	if at > len(d) || at < 0 {
		return false
	}
	for p, s := headerSize, at; p < at && s+4 <= len(d); p, s = p+pageSize, s+4 {
		le.PutUint32(d[s:], crc32.Checksum(d[p:min(p+pageSize, at)], castagnoli))
	}
	Seal(d, 0, 0, 0, uint64(len(d)))
	return true
}

// HeaderSize is the size of the header.
const HeaderSize = headerSize
