package packfile

import (
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// The section is one of package sealed. Its parts are tables and records; groupSize records are between two offsets.
// v stands for a number in LEB128, z for a signed one as binary.AppendVarint writes it. See docs/packs.md.

const groupSize = 16

// Parts, in the order of the section.
const (
	partNames     = iota // texts: names of functions
	partTexts            // texts: all others
	partFunNames         // a number of bits for each function: its name
	partFunctions        // records
	partTypes            // 4 bytes each: types of parameters
	partParams           // records: name and type
	partSigs             // records: lists of parameters
	partValues           // records
	partFrames           // 4 bytes each: values
	partResults          // 4 bytes each: values
	partTuples           // records: lists of values
	partBlocks           // records: sites
	partBTFIndex         // of .BTF: see btf.Index
	partBTFSums          // 4 bytes each: CRC-32C of each PageSize bytes of .BTF
	numParts
)

// Kind is what package sealed knows of packs.
var Kind = sealed.Kind{
	Magic: "bpfpack\n", Version: Version, Section: Section, What: "the pack", Damaged: ErrDamaged,
	Parts: []string{
		"names of functions", "other texts", "functions' names", "functions and calls", "types of parameters", "parameters", "lists of parameters",
		"values", "frames", "results", "lists of values", "sites and ways", "index of types", "checksums of types",
	},
}

// Offsets in the header.
const (
	atFlags  = sealed.AtFacts // 4 bytes
	atCounts = 64             // 4 each: sites, inlined ones, values, blocks, functions, roots
	atBase   = 88             // 4 and 4: types and bytes of strings of the BTF that .BTF follows; 32: its SHA-256
	atRest   = 128            // 4, 32: CRC-32C and SHA-256 of all of the file but .BTF and the section itself
	atBTF    = atRest + 36    // and of .BTF
)

// Flags in the header.
const (
	flagKernel = 1 << iota
	flagChecked
	flagBase
)

// bitWriter appends numbers of n bits each, the lowest bits first.
type bitWriter struct {
	b    []byte
	last uint64
	used int
}

func (x *bitWriter) add(v uint64, n int) {
	x.last |= v << x.used
	for x.used += n; x.used >= 8; x.used -= 8 {
		x.b = append(x.b, byte(x.last))
		x.last >>= 8
	}
}

func (x *bitWriter) end() []byte {
	if x.used > 0 {
		x.b = append(x.b, byte(x.last))
	}
	return x.b
}

// records is a part of records, groupSize of them between two offsets. extra is a number that is kept with each offset.
type records struct {
	body    []byte
	offsets []uint32
	extras  []uint32
	n       int
}

// begin is called before each record.
func (r *records) begin(extra int) {
	if r.n%groupSize == 0 {
		r.offsets = append(r.offsets, uint32(len(r.body)))
		r.extras = append(r.extras, uint32(extra))
	}
	r.n++
}

// end returns the part: the offsets, each with its number if there are any, and the records.
func (r *records) end(extras bool) []byte {
	var b []byte
	for i, o := range r.offsets {
		b = binary.LittleEndian.AppendUint32(b, o)
		if extras {
			b = binary.LittleEndian.AppendUint32(b, r.extras[i])
		}
	}
	return append(b, r.body...)
}

// textTable makes a part of sorted texts: each is how many bytes it shares with the one before, how many follow, and these.
// With extras each offset has the prefix of the text there.
func textTable(sorted []string, extras bool) []byte {
	var r records
	last := ""
	for _, t := range sorted {
		if r.n%groupSize == 0 {
			last = ""
		}
		r.begin(int(prefix(t)))
		same := 0
		for same < min(len(last), len(t)) && last[same] == t[same] {
			same++
		}
		// Most share less than 16 bytes, and have fewer than 15 more.
		if more := len(t) - same; same < 16 && more < 15 {
			r.body = append(r.body, byte(same)<<4|byte(more))
		} else {
			r.body = append(r.body, byte(min(same, 15))<<4|15)
			r.body = binary.AppendUvarint(r.body, uint64(same))
			r.body = binary.AppendUvarint(r.body, uint64(more))
		}
		r.body = append(r.body, t[same:]...)
		last = t
	}
	return r.end(extras)
}

// prefix returns the first four bytes of a text, so that they compare as it does.
func prefix(t string) uint32 {
	var b [4]byte
	copy(b[:], t)
	return binary.BigEndian.Uint32(b[:])
}
