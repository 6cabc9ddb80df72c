package image

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// separatePaths returns where the separate debug file may be, in GDB's order (GDB
// manual, "Separate Debug Files"): by build ID, then by the name in .gnu_debuglink. sum is the checksum of
// the file in .gnu_debuglink, if there is one.
func (f *File) separatePaths() (out []string, sum *uint32) {
	out = f.byBuildID(f.buildID)
	sec := f.own.file.Section(".gnu_debuglink")
	if sec == nil {
		return out, nil
	}
	d, err := f.own.sectionData(sec)
	if err != nil {
		return out, nil
	}
	text, ok := bin.CStringAt(d, 0)
	name := string(text)
	if !ok || name == "" || strings.ContainsRune(name, '/') {
		return out, nil
	}
	// The checksum follows the name and its NUL, at a multiple of 4 bytes.
	if at := (len(name) + 4) &^ 3; len(d) >= at+4 {
		v := f.own.file.ByteOrder.Uint32(d[at:])
		sum = &v
	}
	dir := filepath.Dir(f.Path())
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	out = append(out, filepath.Join(dir, name), filepath.Join(dir, ".debug", name))
	for _, root := range f.debugDirs {
		out = append(out, filepath.Join(root, dir, name))
	}
	return out, sum
}

// byBuildID returns where distributions install the file with debug information that has a build ID.
func (f *File) byBuildID(id string) (out []string) {
	if len(id) <= 2 {
		return nil
	}
	for _, root := range f.debugDirs {
		out = append(out, filepath.Join(root, ".build-id", id[:2], id[2:]+".debug"))
	}
	return out
}

// openSeparate opens a stripped file's separate debug file, if that is installed. Code,
// call frames and addresses still come from the stripped file.
func (f *File) openSeparate() error {
	paths, sum := f.separatePaths()
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		m, err := mapping.Open(path)
		if err != nil {
			return err
		}
		file, err := elf.NewFile(bytes.NewReader(m.Data))
		if err != nil || !f.isOf(m.Data, buildID(file), sum) || !f.sameLayout(path, file) {
			_ = m.Close() // another program's, or damaged: try the next place
			continue
		}
		f.separate = m
		f.debug = source{path, file, m.Data, f.own.budget}
		if file.SectionByType(elf.SHT_SYMTAB) != nil {
			f.syms = f.debug
		}
		return nil
	}
	return nil
}

// isOf reports whether a debug file, with its build ID, is this file's. A build ID tells that. Without one
// there is only the checksum, for which all of the file is read: 1 GB in a tenth of a second, if the kernel
// has it in memory.
func (f *File) isOf(data []byte, id string, sum *uint32) bool {
	if f.buildID != "" {
		return id == f.buildID
	}
	return sum != nil && crc32.ChecksumIEEE(data) == *sum
}
