package image

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// Identity tells a file from others without reading it.
type Identity struct {
	// Key is different for any two files, and for a file before and after it has been written to. It is
	// "" for a file in memory. Devices may change their numbers when a machine starts anew.
	Key string
	// Private is set if only the user of this process and root can write to the file. What was found out
	// about another one need not be so any more, even if Key is the same: who can write to a file can
	// arrange that nothing tells of it.
	Private bool
	Size    int64 // bytes
}

// Identity returns what tells the file, with the other files that have its debug information, from others: what
// they were when they were opened.
func (f *File) Identity() Identity {
	if f.mapped == nil && f.separate == nil {
		return Identity{Private: true, Size: int64(len(f.own.data))}
	}
	id := Identity{Private: f.users.Enter()}
	if id.Private {
		defer f.users.Leave()
	}
	for _, m := range f.mappings() {
		if m != nil {
			id.Key += m.Identity() + " "
			id.Private = id.Private && m.Private() // of a file that was closed, nobody knows
			id.Size += m.Size()
		}
	}
	if f.mapped == nil { // in memory, with a separate debug file
		id.Key, id.Size = "", id.Size+int64(len(f.own.data))
	}
	return id
}

// digested lists the sections that say where functions are, and what they are called.
var digested = []string{".debug_info", ".debug_types", ".debug_abbrev", ".debug_str", ".debug_line_str", ".debug_str_offsets"}

// Digest returns a hash (SHA-256) of what the file says of where functions are and what they are called: its
// symbols, and the sections of debug information with units, abbreviations and names. Two files with one
// digest have the same functions, even if somebody has made one to be taken for the other. It reads all of
// these sections: a kernel's take a tenth of a second.
func (f *File) Digest() (sum [sha256.Size]byte, err error) {
	sections, err := f.DebugSections()
	if err != nil {
		return sum, err
	}
	err = f.Guard(func() error {
		parts := make([][]byte, 0, len(digested)+3)
		for _, name := range digested {
			parts = append(parts, sections[name])
		}
		for _, r := range f.related {
			for _, name := range digested {
				parts = append(append(parts, r.Sections[name]...), r.Sections[name+".dwo"]...)
			}
			for _, name := range []string{".debug_cu_index", ".debug_tu_index"} {
				parts = append(parts, r.Sections[name]...)
			}
		}
		for _, t := range f.symbolTables() {
			parts = append(parts, t.d, t.strs)
		}
		parts = append(parts, f.layout())
		return digest(parts, &sum)
	})
	return sum, err
}

// layout encodes what symbols are read with: the architecture, the kind of file, and the addresses and
// kinds of its sections.
func (f *File) layout() []byte {
	le := binary.LittleEndian
	var b []byte
	for _, file := range []*source{&f.own, &f.syms} {
		b = le.AppendUint16(b, uint16(file.file.Machine))
		b = le.AppendUint16(b, uint16(file.file.Type))
		for _, s := range file.file.Sections {
			b = le.AppendUint64(b, s.Addr)
			b = le.AppendUint64(b, s.Size)
			b = le.AppendUint64(b, uint64(s.Flags))
			b = le.AppendUint32(b, uint32(s.Type)) // objcopy --only-keep-debug leaves all else of the code as it is
		}
	}
	return b
}

// piece is how many bytes are hashed at a time: several processors work on one file.
const piece = 1 << 20

// digest hashes the hashes of the pieces of some parts, and the parts' sizes.
func digest(parts [][]byte, sum *[sha256.Size]byte) error {
	var pieces [][]byte
	all := []byte("bpfprologue digest 1\n")
	for _, p := range parts {
		all = binary.LittleEndian.AppendUint64(all, uint64(len(p)))
		for ; len(p) > piece; p = p[piece:] {
			pieces = append(pieces, p[:piece])
		}
		pieces = append(pieces, p)
	}
	sums := make([][sha256.Size]byte, len(pieces))
	errs := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var wg sync.WaitGroup
	for k := range errs {
		wg.Go(func() {
			errs[k] = mapping.Guard(func() error {
				for i := int(next.Add(1) - 1); i < len(pieces); i = int(next.Add(1) - 1) {
					sums[i] = sha256.Sum256(pieces[i])
				}
				return nil
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	for i := range sums {
		all = append(all, sums[i][:]...)
	}
	*sum = sha256.Sum256(all)
	return nil
}
