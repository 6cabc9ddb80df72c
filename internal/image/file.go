package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

var (
	// ErrNotELF is wrapped by Open's error if the file is not ELF.
	ErrNotELF = errors.New("not an ELF file")
	// ErrNoDWARF is wrapped by DebugSections' error if there is no debug information.
	ErrNoDWARF = errors.New("no DWARF debug information")
	// ErrDamaged is what a *FormatError is, for errors.Is.
	ErrDamaged = errors.New("a damaged file")
	// ErrChanged is wrapped by any method's error if the file was truncated or written to
	// since it was opened. After that the File cannot be used any more.
	ErrChanged = mapping.ErrFault
)

// FormatError says what is wrong with a file, and where.
type FormatError struct {
	Path    string
	Section string // "" for the file as a whole
	Offset  uint64 // bytes from the section's start
	Msg     string
}

// Error prints "path: section+0xoffset: message".
func (e *FormatError) Error() string {
	if e.Section == "" {
		return fmt.Sprintf("%s: %s", e.Path, e.Msg)
	}
	return fmt.Sprintf("%s: %s+%#x: %s", e.Path, e.Section, e.Offset, e.Msg)
}

// Is makes errors.Is(err, ErrDamaged) true.
func (e *FormatError) Is(target error) bool { return target == ErrDamaged }

// File is one ELF file, with its separate debug file if that is installed. Several
// goroutines may call its methods at once: see Close.
type File struct {
	arch     *arch.Arch
	buildID  string
	sections []Section

	own   source // code and data
	debug source // sections with debug information: own, or the separate file's
	syms  source // the symbol table: own, or the separate file's

	debugDirs []string // see Options
	findDebug func(buildID string) (path string, err error)
	notFound  error // why Options.FindDebug did not find debug information

	mapped   *mapping.Mapping // nil for a file in memory
	separate *mapping.Mapping // nil if there is no separate file
	related  []*Related       // see OpenSupplementary, OpenPackage and OpenSplit
	onDisk   bool             // other files can belong to it
	users    mapping.Users    // calls that read them

	sectionsOnce sync.Once
	debugData    map[string][]byte
	debugErr     error

	symbols symbolTable
	asked   asked
	mini    mini
	goTable goTable
	locals  localEntries
	thumb   thumb
}

// Section is one section that is loaded into memory.
type Section struct {
	Name string
	Addr uint64 // link-time address; for a relocatable file see File.IsRelocatable
	Size uint64 // bytes
	Exec bool   // holds instructions
}

// Options are options of Open and FromBytes; nil means the defaults.
type Options struct {
	// MaxUnpacked bounds how many bytes compressed sections, and a file that is compressed as a
	// whole, may unpack to in all. 0 means 24 MiB and 32 times what they are unpacked from, which
	// no compiler's output reaches.
	MaxUnpacked uint64
	// DebugDirs are the directories below which separate debug information is looked for, in this order:
	// by build ID in .build-id, and by the file's own path. nil means /usr/lib/debug; an empty list
	// that is not nil means that only the file's own directory is looked into.
	DebugDirs []string
	// FindDebug, if not nil, is called with the build ID of a file that has no debug information, if
	// DebugDirs have none either. It returns the path of a file that does, or an error, which DebugSections
	// then wraps. See debuginfod.Client.Finder.
	FindDebug func(buildID string) (path string, err error)
}

// find returns FindDebug.
func (o *Options) find() func(string) (string, error) {
	if o == nil {
		return nil
	}
	return o.FindDebug
}

// debugDirs returns the directories to look into: distributions install into the default one.
func (o *Options) debugDirs() []string {
	if o == nil || o.DebugDirs == nil {
		return []string{"/usr/lib/debug"}
	}
	return o.DebugDirs
}

// Open maps an ELF file and reads its headers. A file that is compressed as a whole
// with gzip, xz or zstd, as kernel modules can be, is decompressed into memory. If the
// file has no debug information, Open looks for its separate debug file where
// distributions install it: see DebugPath.
//
// The error wraps ErrNotELF if the file is not ELF, and is a *FormatError if its sections
// cannot be laid out.
func Open(path string, o *Options) (*File, error) {
	m, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	data, packed := m.Data, false
	b := newBudget(o)
	err = mapping.Guard(func() (err error) {
		if packed = isCompressed(data); packed {
			data, err = unpackWhole(path, data, b)
		}
		return err
	})
	var f *File
	if err == nil {
		f, err = newFile(path, data, true, b, o)
	}
	if changed := m.Changed(); changed != nil {
		err = changed
	}
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	if packed {
		return f, m.Close()
	}
	f.mapped = m
	return f, nil
}

// FromBytes reads an ELF file in memory. Errors give name as its path. The bytes must
// not change while the File is in use.
func FromBytes(name string, data []byte, o *Options) (*File, error) {
	return newFile(name, data, false, newBudget(o), o)
}

func newFile(path string, data []byte, onDisk bool, b *budget, o *Options) (*File, error) {
	var f *File
	err := mapping.Guard(func() (err error) {
		f, err = parse(path, data, b)
		if err == nil {
			f.debugDirs, f.findDebug, f.onDisk = o.debugDirs(), o.find(), onDisk
		}
		if err == nil && onDisk && !f.own.hasDebugInfo() {
			err = f.openSeparate(o.find())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func parse(path string, data []byte, b *budget) (*File, error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return nil, fmt.Errorf("%s: %w%s", path, ErrNotELF, notELFHint(data))
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: damaged ELF file: it ends after %d bytes, before what its header names: %w", path, len(data), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: damaged ELF file: %w", path, err)
	}
	f := &File{own: source{path, file, data, b}}
	f.debug, f.syms = f.own, f.own
	f.arch, err = arch.ForELF(file.Machine, file.Class, file.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := layOut(path, file); err != nil {
		return nil, err
	}
	f.sections = loaded(file)
	f.buildID = buildID(file)
	return f, nil
}

// loaded returns the sections that are loaded into memory.
func loaded(file *elf.File) (out []Section) {
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 {
			out = append(out, Section{Name: s.Name, Addr: s.Addr, Size: s.Size, Exec: s.Flags&elf.SHF_EXECINSTR != 0})
		}
	}
	return out
}

// buildID reads a file's build ID from its note sections.
func buildID(file *elf.File) string {
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		d, err := io.ReadAll(io.LimitReader(s.Open(), 1<<16))
		if err != nil {
			continue
		}
		if id := elfnote.BuildID(d, file.ByteOrder); id != "" {
			return id
		}
	}
	return ""
}

// notELFHint recognizes files that users mistake for a vmlinux.
func notELFHint(data []byte) string {
	switch {
	case len(data) == 0:
		return ": it is empty"
	case len(data) > 0x206 && string(data[0x202:0x206]) == "HdrS":
		return ": it is a compressed boot image (vmlinuz); the vmlinux with debug information is in the kernel's debug package"
	case isCompressed(data):
		return ": it is compressed; decompress it first"
	}
	return ""
}

// Close releases the file: at once, or when the last call that is under way in another goroutine
// has ended. What needs the file after that, and such calls, return an error that wraps [os.ErrClosed].
// Methods without an error then return nothing, or a part: ask Changed if a file may have been closed.
func (f *File) Close() error {
	return f.users.Close(func() (err error) {
		for _, m := range f.mappings() {
			err = errors.Join(err, m.Close())
		}
		return err
	})
}

// Path returns the path that the file was opened with.
func (f *File) Path() string { return f.own.path }

// DebugPath returns the path of the separate file with a stripped file's debug
// information, or "". Open finds it by build ID below .build-id in Options.DebugDirs, or by
// the name in .gnu_debuglink.
func (f *File) DebugPath() string {
	if f.separate == nil {
		return ""
	}
	return f.debug.path
}

// Contents returns the bytes of the file itself, decompressed if it was compressed as a whole. They may be mapped:
// callers must not change them, and must read them under Guard.
func (f *File) Contents() []byte { return f.own.data }

// Arch returns the architecture that the file is for.
func (f *File) Arch() *arch.Arch { return f.arch }

// BigEndian reports whether numbers in the file are big-endian.
func (f *File) BigEndian() bool { return f.own.file.Data == elf.ELFDATA2MSB }

// BuildID returns the GNU build ID in hexadecimal, or "" if the file has none.
func (f *File) BuildID() string { return f.buildID }

// IsPositionIndependent reports whether the file is a shared object (ET_DYN): a library, a
// position-independent program, or an arm64 kernel. It is loaded as one at any address.
func (f *File) IsPositionIndependent() bool { return f.own.file.Type == elf.ET_DYN }

// IsRelocatable reports whether the file is relocatable (ET_REL): a kernel module or an
// object file. Its sections have no addresses. Open assigns link-time addresses in the
// order of the file, sections with instructions first. Each section is loaded separately,
// so run-time addresses do not differ from these by one constant.
func (f *File) IsRelocatable() bool { return f.own.file.Type == elf.ET_REL }

// Entry returns the link-time address at which a program begins (e_entry), or 0.
func (f *File) Entry() uint64 {
	entry := f.own.file.Entry
	if f.Arch().LowBit {
		entry &^= 1
	}
	return entry
}

// Sections returns the sections with an address, in the file's order. The caller must not
// change them.
func (f *File) Sections() []Section { return f.sections }

// SectionAt returns the section that holds a link-time address, or nil.
func (f *File) SectionAt(addr uint64) *Section {
	for i := range f.sections {
		s := &f.sections[i]
		if addr >= s.Addr && addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

// Bytes returns a copy of the n bytes that the file has at a link-time address. It is an
// error if they are not all in one section, or not in the file, as for .bss.
func (f *File) Bytes(addr, n uint64) (out []byte, err error) {
	err = f.Guard(func() error {
		d, err := f.peek(addr, n)
		out = bytes.Clone(d)
		return err
	})
	return out, err
}

// View calls visit with what Bytes returns, which is not copied, and must not be kept.
func (f *File) View(addr, n uint64, visit func(d []byte)) error {
	return f.Guard(func() error {
		d, err := f.peek(addr, n)
		if err == nil {
			visit(d)
		}
		return err
	})
}

// peek is Bytes without the copy, and without the guard.
func (f *File) peek(addr, n uint64) ([]byte, error) {
	for _, s := range f.own.file.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Type == elf.SHT_NOBITS || addr < s.Addr || addr-s.Addr >= s.FileSize {
			continue
		}
		d, err := f.own.sectionData(s)
		if err != nil {
			return nil, err
		}
		off := addr - s.Addr
		if off > uint64(len(d)) || n > uint64(len(d))-off {
			return nil, f.own.errorf(s.Name, off, "%d bytes are asked for, and the section has %d from there", n, uint64(len(d))-min(off, uint64(len(d))))
		}
		return d[off : off+n : off+n], nil
	}
	return nil, fmt.Errorf("%s: the file has nothing at %#x", f.Path(), addr)
}

// FileOffset returns the offset in the file, in bytes, of the byte at a link-time address.
// A uprobe is attached at such an offset. It is an error if no segment loads the address
// from the file.
func (f *File) FileOffset(addr uint64) (uint64, error) {
	for _, p := range f.own.file.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return addr - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("%s: the file has no code at %#x", f.Path(), addr)
}

// noDWARF returns the error for a file without debug information.
func (f *File) noDWARF() error {
	file := f.own.file
	hint := "build it with -g"
	if file.Type == elf.ET_EXEC && file.Section("__ksymtab") != nil {
		hint = "for a kernel, install its debug package (Debian: linux-image-$(uname -r)-dbg, Fedora: kernel-debuginfo) or build with CONFIG_DEBUG_INFO=y"
	} else if file.Section(".debug_info.dwo") != nil {
		hint = "it is one half of what -gsplit-dwarf made: name the program, whose debug information leads to it"
	} else if file.Section(".symtab") == nil {
		hint = "the file is stripped: install its debug package or build it with -g and keep the result"
	}
	if f.notFound != nil {
		return fmt.Errorf("%s: %w: %s; %w", f.Path(), ErrNoDWARF, hint, f.notFound)
	}
	if f.buildID != "" {
		hint += "; its build ID is " + f.buildID
	}
	return fmt.Errorf("%s: %w: %s", f.Path(), ErrNoDWARF, hint)
}
