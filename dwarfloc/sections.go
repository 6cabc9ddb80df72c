package dwarfloc

import (
	"cmp"
	"debug/elf"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// source is one ELF file that sections are taken from: the image, or the file with
// its debug information.
type source struct {
	path string
	file *elf.File
	data []byte
}

func (src *source) errorf(section string, off uint64, format string, args ...any) error {
	return &FormatError{Path: src.path, Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
}

// taken is a section with debug information on its way into an image.
type taken struct {
	dst   *[]byte
	sec   *elf.Section
	index int
	d     []byte
}

// takeSections finds the sections with debug information in a file: the image, or
// the separate file of its debug information. Compressed ones are decompressed side
// by side, and those of a file that no linker has seen are relocated.
func (img *Image) takeSections(src source, frames bool) error {
	dst := map[string]*[]byte{
		"info": &img.info, "abbrev": &img.abbrev, "str": &img.str, "line_str": &img.lineStr,
		"str_offsets": &img.strOffsets, "addr": &img.addr, "loc": &img.loc, "loclists": &img.loclists,
		"ranges": &img.ranges, "rnglists": &img.rnglists, "line": &img.line, "frame": &img.frame,
	}
	var list []taken
	first := make(map[*[]byte]bool)
	for i, s := range src.file.Sections {
		name, ok := strings.CutPrefix(s.Name, ".debug_")
		if !ok {
			name, ok = strings.CutPrefix(s.Name, ".zdebug_")
		}
		to := dst[name]
		if !ok {
			to = nil
		}
		if frames && s.Name == ".eh_frame" {
			img.ehFrameAddr = s.Addr
			to = &img.ehFrame
		}
		if to == nil || s.Type == elf.SHT_NOBITS {
			continue
		}
		if first[to] && src.file.Type == elf.ET_REL {
			return src.errorf(s.Name, 0, "unsupported second section of this name: link the file first, or build it without -fdebug-types-section")
		}
		first[to] = true
		list = append(list, taken{dst: to, sec: s, index: i})
	}
	// The large ones first: the last to finish are then small.
	slices.SortStableFunc(list, func(a, b taken) int { return cmp.Compare(b.sec.FileSize, a.sec.FileSize) })
	err := sideBySide(len(list), func(i int) (err error) {
		t := &list[i]
		t.d, err = src.sectionData(t.sec)
		return err
	})
	if err != nil {
		return err
	}
	if err := src.relocate(img.arch, list); err != nil {
		return err
	}
	for i := range list {
		*list[i].dst = list[i].d
	}
	return nil
}

// sideBySide calls f for 0 to n-1 on all processors. The error of the lowest index
// wins, so that the answer does not depend on timing.
func sideBySide(n int, f func(i int) error) error {
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
				errs[i] = guard(func() error { return f(i) })
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

// sectionData returns a section's bytes: a part of the file itself, or, for a
// compressed section, a decompressed copy.
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
