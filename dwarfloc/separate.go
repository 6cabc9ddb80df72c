package dwarfloc

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// debugRoot is where distributions install separate debug information.
const debugRoot = "/usr/lib/debug"

// separatePaths are the places where the debug information of a stripped file may
// be, as GDB looks for it (GDB manual, "Separate Debug Files"): by build ID, then by
// the name in .gnu_debuglink.
func (img *Image) separatePaths() []string {
	var out []string
	if len(img.buildID) > 2 {
		out = append(out, filepath.Join(debugRoot, ".build-id", img.buildID[:2], img.buildID[2:]+".debug"))
	}
	sec := img.file.Section(".gnu_debuglink")
	if sec == nil {
		return out
	}
	src := img.symSource()
	d, err := src.sectionData(sec)
	if err != nil {
		return out
	}
	name, ok := zstr(d, 0)
	if !ok || name == "" || strings.ContainsRune(name, '/') {
		return out
	}
	dir := filepath.Dir(img.path)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return append(out, filepath.Join(dir, name), filepath.Join(dir, ".debug", name), filepath.Join(debugRoot, dir, name))
}

// SeparatePath returns the path of the file that a stripped image's debug
// information was taken from, or "".
func (img *Image) SeparatePath() string { return img.separatePath }

// openSeparate takes the debug information of a stripped image from the file that
// was split off, if that is installed. Code, call frames and addresses are the
// image's own.
func (img *Image) openSeparate() error {
	for _, path := range img.separatePaths() {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		m, err := mapping.Open(path)
		if err != nil {
			return err
		}
		file, err := elf.NewFile(bytes.NewReader(m.Data))
		if err != nil || img.buildID != "" && findBuildID(file) != img.buildID || !img.sameLayout(path, file) {
			_ = m.Close() // another program's, or damaged: the next place may be better
			continue
		}
		if err := img.takeSections(source{path, file, m.Data}, false); err != nil {
			_ = m.Close()
			return err
		}
		if file.SectionByType(elf.SHT_SYMTAB) != nil {
			img.symFile, img.symData = file, m.Data
		}
		img.separate, img.separatePath = m, path
		return nil
	}
	return nil
}
