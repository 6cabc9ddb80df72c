package mutate

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
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
	own := len(data) - index.KeptKnown
	if own < sealed.HeaderSize {
		return nil, nil
	}
	known := bytes.Clone(data[own:])
	v := &variant{layout: keptLayout, Rand: r, data: bytes.Clone(data[:own])}
	for range 1 + r.IntN(3) {
		tables := v.data[sealed.HeaderSize:]
		switch r.IntN(4) {
		case 0: // sizes and numbers of the parts
			at := sealed.AtParts + 4*r.IntN(2*len(index.KeptKind.Parts))
			v.number(v.data[at:at+4], "counts")
		case 1: // pages, units, and what follows
			v.somewhere(tables[:min(len(tables), 300)], "units")
		case 2:
			v.somewhere(tables, "tables")
		default:
			v.data = v.data[:len(v.data)-r.IntN(min(9, len(tables)))]
			v.say("the end is cut")
		}
	}
	index.KeptKind.Reseal(v.data)
	return v.said, os.WriteFile(path, append(v.data, known...), 0o600)
}
