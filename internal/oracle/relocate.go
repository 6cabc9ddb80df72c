package oracle

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// contents returns the bytes of a section, decompressed.
func contents(s *elf.Section) ([]byte, error) {
	d, err := s.Data() // decompresses what says so in its flags
	if err != nil || !bytes.HasPrefix(d, []byte("ZLIB")) || s.Name[:2] != ".z" || len(d) < 12 {
		return d, err
	}
	// GNU's old form: "ZLIB", the size in big-endian order, and the data.
	r, err := zlib.NewReader(bytes.NewReader(d[12:]))
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint64(d[4:])
	out, err := io.ReadAll(io.LimitReader(r, int64(min(size, 1<<32))))
	if err == nil && uint64(len(out)) != size {
		err = fmt.Errorf("%d bytes decompressed, and it has %d", len(out), size)
	}
	return out, err
}

// relocation says what a type of relocation writes: size bytes, relative to their own place
// or not.
type relocation struct {
	size     int
	relative bool
}

// The types that compilers write for debug information and frames: System V ABI for AMD64,
// table 4.9, and ELF for the Arm 64-bit Architecture, section 5.7.
var relocations = map[elf.Machine]map[uint32]relocation{
	elf.EM_X86_64: {
		uint32(elf.R_X86_64_64): {8, false}, uint32(elf.R_X86_64_32): {4, false}, uint32(elf.R_X86_64_32S): {4, false},
		uint32(elf.R_X86_64_PC32): {4, true}, uint32(elf.R_X86_64_PLT32): {4, true}, uint32(elf.R_X86_64_PC64): {8, true},
		uint32(elf.R_X86_64_DTPOFF64): {8, false}, uint32(elf.R_X86_64_DTPOFF32): {4, false},
	},
	elf.EM_AARCH64: {
		uint32(elf.R_AARCH64_ABS64): {8, false}, uint32(elf.R_AARCH64_ABS32): {4, false}, uint32(elf.R_AARCH64_ABS16): {2, false},
		uint32(elf.R_AARCH64_PREL64): {8, true}, uint32(elf.R_AARCH64_PREL32): {4, true},
	},
}

// relocate returns a section of a relocatable file with its gaps filled. addrs are the
// addresses of the file's sections, by their indices.
func relocate(e *elf.File, index int, d []byte, addrs []uint64, symbols []elf.Symbol) ([]byte, error) {
	for _, rel := range e.Sections {
		if rel.Type != elf.SHT_RELA || int(rel.Info) != index {
			continue
		}
		entries, err := rel.Data()
		if err != nil {
			return nil, err
		}
		d = bytes.Clone(d)
		le := binary.LittleEndian
		for ; len(entries) >= 24; entries = entries[24:] {
			at, info, addend := le.Uint64(entries), le.Uint64(entries[8:]), le.Uint64(entries[16:])
			if uint32(info) == 0 {
				continue // nothing
			}
			how, ok := relocations[e.Machine][uint32(info)]
			if !ok || at > uint64(len(d)) || uint64(how.size) > uint64(len(d))-at {
				return nil, fmt.Errorf("%s: a relocation of type %d at %#x", rel.Name, uint32(info), at)
			}
			v := addend
			// Symbol 0 has no name and no value, and debug/elf leaves it out.
			if n := info >> 32; n > uint64(len(symbols)) {
				return nil, fmt.Errorf("%s: symbol %d of %d", rel.Name, n, len(symbols))
			} else if n > 0 {
				s := &symbols[n-1]
				v += s.Value
				if int(s.Section) < len(addrs) {
					v += addrs[s.Section]
				}
			}
			if how.relative {
				v -= addrs[index] + at
			}
			copy(d[at:], le.AppendUint64(nil, v)[:how.size])
		}
	}
	return d, nil
}
