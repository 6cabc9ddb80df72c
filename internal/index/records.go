package index

import (
	"encoding/binary"
)

// packedRec is how many bytes a packed record has without its name: where its entry is, its parent and its flags, and its root, in
// 32 bits each. All records of a unit are read for each question about one of its functions: they are numbers of a fixed width, which are
// read five times as fast as shorter ones of the width that each needs.
const (
	packedRec   = 12
	packedFlags = 2 // below the parent's number
)

// AppendRecs appends a unit's records to b, and then the names of those that have their own, in order.
func AppendRecs(b []byte, recs []Rec) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(len(recs)))
	for i := range recs {
		r := &recs[i]
		b = le.AppendUint32(b, r.Off)
		b = le.AppendUint32(b, uint32(r.Parent+1)<<packedFlags|uint32(r.Flags))
		b = le.AppendUint32(b, uint32(r.Root+1))
	}
	for i := range recs {
		if recs[i].named(i) {
			b = le.AppendUint64(b, uint64(recs[i].Name))
		}
	}
	return b
}

// named reports whether a record, the i-th of its unit, has a name of its own.
func (r *Rec) named(i int) bool { return r.Root < 0 || int(r.Root) == i }

// DecodeRecs decodes a unit's records. ok is false if AppendRecs did not write them.
func DecodeRecs(d []byte) (recs []Rec, ok bool) {
	le := binary.LittleEndian
	if len(d) < 4 {
		return nil, false
	}
	n := uint64(le.Uint32(d))
	d = d[4:]
	if n > uint64(len(d))/packedRec {
		return nil, false
	}
	names := d[n*packedRec:]
	recs = make([]Rec, n)
	for i := range recs {
		p := d[i*packedRec : i*packedRec+packedRec]
		flags := le.Uint32(p[4:])
		r := &recs[i]
		r.Off, r.Parent, r.Root, r.Flags = le.Uint32(p), int32(flags>>packedFlags)-1, int32(le.Uint32(p[8:]))-1, Flag(flags&(1<<packedFlags-1))
		if int(r.Parent) >= i || r.Root < -1 || int(r.Root) >= len(recs) || i > 0 && r.Off < recs[i-1].Off {
			return nil, false
		}
		if r.named(i) {
			if len(names) < 8 {
				return nil, false
			}
			r.Name, names = NameRef(le.Uint64(names)), names[8:]
		}
	}
	return recs, len(names) == 0
}
