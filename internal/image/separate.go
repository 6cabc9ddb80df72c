package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
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

// openSeparate opens a stripped file's separate debug file, if that is installed, or if find knows
// where it is. Code, call frames and addresses still come from the stripped file.
func (f *File) openSeparate(find func(buildID string) (path string, err error)) error {
	paths, sum := f.separatePaths()
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		// Another program's, or damaged: try the next place.
		if why, err := f.takeSeparate(path, sum); why == "" || err != nil {
			return err
		}
	}
	if find == nil || f.buildID == "" {
		return nil
	}
	path, err := find(f.buildID)
	if err != nil {
		f.notFound = err
		return nil
	}
	why, err := f.takeSeparate(path, sum)
	if why != "" {
		f.notFound = fmt.Errorf("%s: %s", path, why)
	}
	return err
}

// takeSeparate takes a file's debug information, or says why it is not this one's.
func (f *File) takeSeparate(path string, sum *uint32) (why string, err error) {
	m, err := mapping.Open(path)
	if err != nil {
		return "", err
	}
	file, err := elf.NewFile(bytes.NewReader(m.Data))
	switch {
	case err != nil:
		why = "damaged ELF file: " + err.Error()
	case !f.isOf(m.Data, buildID(file), sum):
		why = fmt.Sprintf("its build ID is %s, not %s", cmp.Or(buildID(file), "none"), f.buildID)
	case !f.sameLayout(path, file):
		why = "its sections are not those of " + f.Path()
	}
	if why != "" {
		return why, m.Close()
	}
	f.separate = m
	f.debug = source{path, file, m.Data, f.own.budget}
	if file.SectionByType(elf.SHT_SYMTAB) != nil {
		f.syms = f.debug
	}
	return "", nil
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
