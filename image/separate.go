package image

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// debugRoot is where distributions install separate debug information.
const debugRoot = "/usr/lib/debug"

// separatePaths returns where the separate debug file may be, in GDB's order (GDB
// manual, "Separate Debug Files"): by build ID, then by the name in .gnu_debuglink.
func (f *File) separatePaths() []string {
	var out []string
	if len(f.buildID) > 2 {
		out = append(out, filepath.Join(debugRoot, ".build-id", f.buildID[:2], f.buildID[2:]+".debug"))
	}
	sec := f.own.file.Section(".gnu_debuglink")
	if sec == nil {
		return out
	}
	d, err := f.own.sectionData(sec)
	if err != nil {
		return out
	}
	text, ok := bin.CStringAt(d, 0)
	name := string(text)
	if !ok || name == "" || strings.ContainsRune(name, '/') {
		return out
	}
	dir := filepath.Dir(f.Path())
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return append(out, filepath.Join(dir, name), filepath.Join(dir, ".debug", name), filepath.Join(debugRoot, dir, name))
}

// openSeparate opens a stripped file's separate debug file, if that is installed. Code,
// call frames and addresses still come from the stripped file.
func (f *File) openSeparate() error {
	for _, path := range f.separatePaths() {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		m, err := mapping.Open(path)
		if err != nil {
			return err
		}
		file, err := elf.NewFile(bytes.NewReader(m.Data))
		if err != nil || f.buildID != "" && buildID(file) != f.buildID || !f.sameLayout(path, file) {
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
