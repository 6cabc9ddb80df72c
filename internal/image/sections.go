package image

import (
	"debug/elf"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// source is an ELF file that sections are read from: the opened file, or its separate
// debug file.
type source struct {
	path   string
	file   *elf.File
	data   []byte
	budget *budget
}

func (src *source) errorf(section string, off uint64, format string, args ...any) error {
	return &FormatError{Path: src.path, Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
}

// hasDebugInfo reports whether the file itself has debug information.
func (src *source) hasDebugInfo() bool {
	return slices.ContainsFunc(src.file.Sections, func(s *elf.Section) bool {
		return (s.Name == ".debug_info" || s.Name == ".zdebug_info") && s.Type != elf.SHT_NOBITS && s.FileSize > 0
	})
}

// debugSections lists the sections that DebugSections returns: those that describe code
// and variables, but not indexes such as .debug_aranges and .debug_names.
var debugSections = map[string]bool{
	".debug_info": true, ".debug_abbrev": true, ".debug_str": true, ".debug_line_str": true,
	".debug_str_offsets": true, ".debug_addr": true, ".debug_loc": true, ".debug_loclists": true,
	".debug_ranges": true, ".debug_rnglists": true, ".debug_line": true, ".debug_frame": true,
	".debug_types": true, ".eh_frame": true, ".gcc_except_table": true, ".gnu_debugaltlink": true, ".debug_sup": true,
}

// joined lists the sections of which a relocatable file has several: one for each type
// (-fdebug-types-section), so that a linker keeps one of equal ones. They are joined in the
// file's order.
var joined = map[string]bool{".debug_info": true, ".debug_types": true}

// taken is a section on its way into DebugSections.
type taken struct {
	name  string
	sec   *elf.Section
	index int
	d     []byte
}

// DebugSections returns the sections that describe code and variables, by name:
// ".debug_info", .debug_abbrev, str, line_str, str_offsets, addr, loc, loclists, ranges,
// rnglists, line, frame, types and sup, ".eh_frame", ".gcc_except_table" (not of a relocatable
// file) and ".gnu_debugaltlink", as far as the file has them. Compressed sections are
// decompressed; old ones named .zdebug_info get the name ".debug_info". In a relocatable file,
// sections are relocated to the addresses in Sections. For a stripped file they come from the
// separate debug file, except .eh_frame and .gcc_except_table. The bytes may be mapped from the
// file: callers must not change them, and must read them under Guard.
//
// The error wraps ErrNoDWARF if there is no .debug_info, and is a *FormatError if a section
// is damaged. The work is done once.
func (f *File) DebugSections() (map[string][]byte, error) {
	if err := f.closed(); err != nil {
		return nil, err
	}
	f.sectionsOnce.Do(func() {
		f.debugErr = f.Guard(func() (err error) {
			f.debugData, err = f.takeSections()
			return err
		})
	})
	return f.debugData, f.debugErr
}

func (f *File) takeSections() (map[string][]byte, error) {
	if !f.debug.hasDebugInfo() {
		return nil, f.noDWARF()
	}
	out := make(map[string][]byte)
	if err := f.own.take(f, out, func(string) bool { return true }); err != nil {
		return nil, err
	}
	if f.separate != nil {
		if err := f.debug.take(f, out, func(name string) bool { return name != ".eh_frame" && name != ".gcc_except_table" }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// take adds the wanted sections to out. It decompresses them in parallel.
func (src *source) take(f *File, out map[string][]byte, want func(name string) bool) error {
	var list []taken
	first := make(map[string]bool)
	for i, s := range src.file.Sections {
		name := s.Name
		if rest, ok := strings.CutPrefix(name, ".zdebug_"); ok {
			name = ".debug_" + rest
		}
		if !debugSections[name] || s.Type == elf.SHT_NOBITS || !want(name) {
			continue
		}
		if name == ".gcc_except_table" && src.file.Type == elf.ET_REL {
			continue // there is one for each function
		}
		if first[name] && src.file.Type == elf.ET_REL && !joined[name] {
			return src.errorf(s.Name, 0, "unsupported second section of this name: link the file first")
		}
		first[name] = true
		list = append(list, taken{name: name, sec: s, index: i})
	}
	// Start with the largest, so that no large one is left to the end.
	radix.Sort(list, func(t *taken) uint64 { return ^t.sec.FileSize })
	err := inParallel(len(list), func(i int) (err error) {
		t := &list[i]
		t.d, err = src.sectionData(t.sec)
		return err
	})
	if err != nil {
		return err
	}
	if err := src.relocate(f.arch.Name, list); err != nil {
		return err
	}
	radix.Sort(list, func(t *taken) uint64 { return uint64(t.index) })
	for i := range list {
		t := &list[i]
		if before, ok := out[t.name]; ok && joined[t.name] && src.file.Type == elf.ET_REL {
			t.d = slices.Concat(before, t.d)
		}
		out[t.name] = t.d
	}
	return nil
}

// SectionContents returns the bytes of the first section with a name in the file itself, or nil if there is none that
// has any. As those of DebugSections they may be mapped from the file.
func (f *File) SectionContents(name string) (d []byte, err error) {
	if err := f.closed(); err != nil {
		return nil, err
	}
	err = f.Guard(func() (err error) {
		for _, s := range f.own.file.Sections {
			if s.Name == name {
				d, err = f.own.sectionData(s)
				break
			}
		}
		return err
	})
	return d, err
}

// inParallel calls f for 0 to n-1 on all processors. It returns the error of the lowest
// index, so that the result does not depend on timing.
func inParallel(n int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, n)
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				errs[i] = mapping.Work(func() error { return f(i) })
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sectionData returns a section's bytes: part of the file itself or, for a compressed
// section, a decompressed copy.
func (src *source) sectionData(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	if s.Offset > uint64(len(src.data)) || s.FileSize > uint64(len(src.data))-s.Offset {
		return nil, src.errorf(s.Name, 0, "the section needs %d bytes from file offset %#x, and the file has %d: it was cut short",
			s.FileSize, s.Offset, len(src.data))
	}
	d := src.data[s.Offset : s.Offset+s.FileSize : s.Offset+s.FileSize]
	switch {
	case s.Flags&elf.SHF_COMPRESSED != 0:
		return src.decompress(s, d)
	case strings.HasPrefix(s.Name, ".zdebug_"):
		return src.decompressOld(s, d)
	}
	return d, nil
}
