package mutate

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Where the parts of a kept index are: see internal/index.
const (
	keptHashes = 4 * 32 // after the magic number: which files the index is of
	keptCounts = 5 * 8  // after the checksum and the hash of the contents
)

// keptLayout is that of an index, which has no sections.
var keptLayout = &layout{file: &elf.File{Sections: []*elf.Section{{}}}}

// keptFile returns the path of the index that is kept in a folder, or "".
func keptFile(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "*"+index.KeptSuffix))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

// mutateKept damages the index that is kept in a folder, and mends its checksum. done is what was done,
// and is empty if there is none.
func mutateKept(dir string, r *rand.Rand) (done []string, err error) {
	path := keptFile(dir)
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	const sum = len(index.KeptMagic) + keptHashes
	v := &variant{layout: keptLayout, Rand: r, data: bytes.Clone(data)}
	for range 1 + r.IntN(3) {
		body := v.data[sum+4:]
		switch r.IntN(4) {
		case 0: // counts and lengths
			if counts := body[32:]; len(counts) >= keptCounts {
				at := 8 * r.IntN(keptCounts/8)
				v.number(counts[at:at+8], "counts")
			}
		case 1: // units, and what follows
			v.somewhere(body[min(len(body), 32+keptCounts):min(len(body), 32+keptCounts+200)], "units")
		case 2:
			v.somewhere(body[min(len(body), 32+keptCounts):], "tables")
		default:
			v.data = v.data[:len(v.data)-r.IntN(min(9, len(body)-32))]
			v.say("the end is cut")
		}
	}
	le.PutUint32(v.data[sum:], crc32.Checksum(v.data[sum+4:], crc32.MakeTable(crc32.Castagnoli)))
	return v.said, os.WriteFile(path, v.data, 0o600)
}
