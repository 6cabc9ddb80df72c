package image

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// Related is another file with parts of a file's debug information.
type Related struct {
	Path    string
	BuildID string // in hexadecimal, or ""
	// Sections holds the sections of debug information by their names, decompressed: ".debug_info.dwo". Of
	// some names there can be several. The bytes may be mapped from the file, as those of DebugSections.
	Sections map[string][][]byte

	mapped *mapping.Mapping
	size   int64
}

// OpenSupplementary opens the supplementary file with what several files have in common (dwz -m): by its build ID
// below .build-id in Options.DebugDirs, or by its name, which is relative to the file that refers to it, or there in
// .dwz, or where Options.FindDebug says. check returns an error for a file that is another one. If there is none, the
// result is nil; if there are only
// others, the error is that for the first of them.
//
// It and the other methods that open related files are for use right after Open, by one goroutine.
func (f *File) OpenSupplementary(name string, id []byte, check func(*Related) error) (*Related, error) {
	paths := f.byBuildID(hex.EncodeToString(id))
	if name != "" {
		if filepath.IsAbs(name) {
			paths = append(paths, name)
		} else {
			paths = append(paths, filepath.Join(realDir(f.debug.path), name))
		}
		for _, root := range f.debugDirs {
			if filepath.IsAbs(name) {
				paths = append(paths, filepath.Join(root, name))
			}
			paths = append(paths, filepath.Join(root, ".dwz", filepath.Base(name)), filepath.Join(root, filepath.Base(name)))
		}
	}
	r, err := f.openRelated(paths, check)
	if r != nil || err != nil || f.findDebug == nil || len(id) == 0 || !f.onDisk {
		return r, err
	}
	path, err := f.findDebug(hex.EncodeToString(id))
	if err != nil {
		return nil, err
	}
	return f.openRelated([]string{path}, check)
}

// OpenPackage opens the package with split units that is beside the file, FILE.dwp, or is there below
// Options.DebugDirs, or in one of them. For check and what is returned see OpenSupplementary.
func (f *File) OpenPackage(check func(*Related) error) (*Related, error) {
	var paths []string
	for _, path := range []string{f.own.path, f.debug.path} {
		paths = append(paths, path+".dwp")
		if whole, ok := strings.CutSuffix(path, ".debug"); ok {
			paths = append(paths, whole+".dwp")
		}
		dir := realDir(path)
		paths = append(paths, filepath.Join(dir, filepath.Base(path)+".dwp"))
		for _, root := range f.debugDirs {
			paths = append(paths, filepath.Join(root, dir, filepath.Base(path)+".dwp"), filepath.Join(root, filepath.Base(path)+".dwp"))
		}
	}
	return f.openRelated(paths, check)
}

// OpenSplit opens a file with split units (.dwo) that was compiled in a directory: there, beside the file, or below
// Options.DebugDirs, or in one of them. For check and what is returned see OpenSupplementary.
func (f *File) OpenSplit(dir, name string, check func(*Related) error) (*Related, error) {
	var paths []string
	built := name
	if !filepath.IsAbs(name) {
		built = filepath.Join(dir, name)
	}
	if filepath.IsAbs(built) { // else it is relative to where nobody knows
		paths = append(paths, built)
	}
	for _, path := range []string{f.own.path, f.debug.path} {
		if !filepath.IsAbs(name) {
			paths = append(paths, filepath.Join(realDir(path), name))
		}
		paths = append(paths, filepath.Join(realDir(path), filepath.Base(name)))
	}
	for _, root := range f.debugDirs {
		paths = append(paths, filepath.Join(root, built), filepath.Join(root, filepath.Base(name)))
	}
	return f.openRelated(paths, check)
}

// realDir returns the directory of a file, without symbolic links.
func realDir(path string) string {
	if found, err := filepath.EvalSymlinks(path); err == nil {
		path = found
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Dir(path)
}

// openRelated opens the first of some files that check accepts. A file in memory has no others.
func (f *File) openRelated(paths []string, check func(*Related) error) (*Related, error) {
	if !f.onDisk {
		return nil, nil
	}
	var first error
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			continue
		}
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			continue
		}
		r, err := f.readRelated(path)
		if err == nil {
			if err = f.accept(r, check); err == nil {
				return r, nil
			}
			err = errors.Join(err, r.mapped.Close())
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (f *File) accept(r *Related, check func(*Related) error) error {
	if err := mapping.Guard(func() error { return check(r) }); err != nil {
		return err
	}
	f.related = append(f.related, r)
	return nil
}

// readRelated maps a file and finds its sections.
func (f *File) readRelated(path string) (*Related, error) {
	m, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Related{Path: path, mapped: m, size: m.Size(), Sections: make(map[string][][]byte)}
	err = mapping.Guard(func() error {
		file, err := elf.NewFile(bytes.NewReader(m.Data))
		if err != nil {
			return fmt.Errorf("%s: damaged ELF file: %w", path, err)
		}
		if file.Class != f.own.file.Class || file.Data != f.own.file.Data {
			return fmt.Errorf("%s: it is for %v %v, and %s for %v %v", path, file.Class, file.Data, f.Path(), f.own.file.Class, f.own.file.Data)
		}
		r.BuildID = buildID(file)
		src := source{path, file, m.Data, f.own.budget}
		for _, s := range file.Sections {
			name := s.Name
			if rest, ok := strings.CutPrefix(name, ".zdebug_"); ok {
				name = ".debug_" + rest
			}
			if !strings.HasPrefix(name, ".debug_") || s.Type == elf.SHT_NOBITS {
				continue
			}
			d, err := src.sectionData(s)
			if err != nil {
				return err
			}
			r.Sections[name] = append(r.Sections[name], d)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return r, nil
}

// mappings returns the files that are mapped.
func (f *File) mappings() []*mapping.Mapping {
	all := []*mapping.Mapping{f.mapped, f.separate}
	for _, r := range f.related {
		all = append(all, r.mapped)
	}
	return all
}
