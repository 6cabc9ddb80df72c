package index

import (
	"encoding/binary"
	"unsafe"
)

// packedRec is how many bytes a packed record has: as many as in memory.
const packedRec = int(unsafe.Sizeof(Rec{}))

// AppendRecs appends a unit's records to b, as they are in the memory of a little-endian machine.
func AppendRecs(b []byte, recs []Rec) []byte {
	le := binary.LittleEndian
	for i := range recs {
		r := &recs[i]
		b = le.AppendUint32(b, r.Off)
		b = le.AppendUint32(b, uint32(r.Parent))
		b = le.AppendUint32(b, uint32(r.Root))
		b = le.AppendUint32(b, uint32(r.Flags))
		b = le.AppendUint64(b, uint64(r.Name))
	}
	return b
}

// inPlace reports whether packed records are in memory as records are. A question about a function in a thousand units needs
// all records of these, which would take a third of its memory as copies.
func inPlace(d []byte) bool {
	littleEndian := binary.NativeEndian.Uint16([]byte{1, 0}) == 1
	return littleEndian && len(d) > 0 && uintptr(unsafe.Pointer(&d[0]))%unsafe.Alignof(Rec{}) == 0
}

// DecodeRecs returns a unit's records, which may be in the memory of d. ok is false if AppendRecs did not write them.
func DecodeRecs(d []byte) (recs []Rec, ok bool) {
	n := len(d) / packedRec
	if n*packedRec != len(d) {
		return nil, false
	}
	if inPlace(d) {
		recs = unsafe.Slice((*Rec)(unsafe.Pointer(&d[0])), n)
	} else {
		le := binary.LittleEndian
		recs = make([]Rec, n)
		for i := range recs {
			p := d[i*packedRec:]
			recs[i] = Rec{le.Uint32(p), int32(le.Uint32(p[4:])), int32(le.Uint32(p[8:])), Flag(p[12]), NameRef(le.Uint64(p[16:]))}
		}
	}
	for i := range recs {
		r := &recs[i]
		if int(r.Parent) >= i || r.Parent < -1 || int(r.Root) >= n || r.Root < -1 || i > 0 && r.Off < recs[i-1].Off {
			return nil, false
		}
	}
	return recs, true
}
