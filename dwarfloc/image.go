package dwarfloc

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// ErrNoDWARF is wrapped by Open's error for an ELF file without debug
// information.
var ErrNoDWARF = errors.New("no DWARF debug information")

// ErrNotELF is wrapped by Open's error for a file that is not ELF.
var ErrNotELF = errors.New("not an ELF file")

// FormatError says where in an image something is wrong.
type FormatError struct {
	Path    string
	Section string // "" for the file as a whole
	Offset  uint64 // bytes from the section's start
	Msg     string
}

func (e *FormatError) Error() string {
	if e.Section == "" {
		return fmt.Sprintf("%s: %s", e.Path, e.Msg)
	}
	return fmt.Sprintf("%s: %s+%#x: %s", e.Path, e.Section, e.Offset, e.Msg)
}

// Image is one ELF file with its DWARF. Its methods may be called by several
// goroutines at once.
type Image struct {
	path         string
	file         *elf.File
	mapped       *mapping.Mapping // nil for an image in memory
	separate     *mapping.Mapping // the file with the debug information, when it is another
	separatePath string
	data         []byte
	symFile      *elf.File // the file with the symbol table
	symData      []byte
	arch         *arch.Arch
	decoder      *slotDecoder // nil when there is none
	be           bool
	buildID      string
	sections     []Section

	info, abbrev, str, lineStr, strOffsets, addr []byte
	loc, loclists, ranges, rnglists, line        []byte
	frame, ehFrame                               []byte
	ehFrameAddr                                  uint64

	aside     sync.WaitGroup // work that Close waits for
	unitsOnce sync.Once
	unitsErr  error
	units     []unit // see prepare

	progress Progress
	scanMu   sync.Mutex
	scanned  bool
	scanErr  error

	frames  frameTable
	symbols symbolTable
	globals globals
	full    fullTypes
	typesOf *Image // that completes types that are only declared here

	cache Cache
	kept  *kept // a scan that was kept, in place of one of our own
}

// Section is one section of the image that the running program has in memory.
type Section struct {
	Name string
	Addr uint64 // link-time address; of a module or an object file see Image.LoadsApart
	Size uint64 // bytes
	Exec bool   // holds instructions
}

// Open maps an ELF file and finds its DWARF. It reads nothing but headers: the
// debug information is scanned when it is first asked for. Compressed sections are
// decompressed, and those of a relocatable file (a kernel module) are relocated. A
// file that is compressed as a whole, as modules may be, is decompressed.
func Open(path string) (*Image, error) {
	m, err := mapping.Open(path)
	if err != nil {
		return nil, err
	}
	data, packed := m.Data, false
	err = guard(func() (err error) {
		if packed = isCompressed(data); packed {
			data, err = unpackWhole(path, data)
		}
		return err
	})
	var img *Image
	if err == nil {
		img, err = newImage(path, data, true)
	}
	if changed := m.Changed(); changed != nil {
		err = changed
	}
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	if packed {
		return img, m.Close()
	}
	img.mapped = m
	return img, nil
}

// FromBytes makes an image of an ELF file in memory. The name stands for its
// path in errors. The bytes must not change while the image is in use.
func FromBytes(name string, data []byte) (*Image, error) {
	return newImage(name, data, false)
}

// Close releases the file. What came from the image stays valid, except that
// nothing more can be asked of it.
func (img *Image) Close() error {
	img.aside.Wait()
	err := errors.Join(img.mapped.Close(), img.separate.Close())
	if img.kept != nil {
		err = errors.Join(err, img.kept.mapped.Close())
	}
	return err
}

// Path returns the path the image was opened by.
func (img *Image) Path() string { return img.path }

// Arch returns the image's architecture.
func (img *Image) Arch() *arch.Arch { return img.arch }

// BigEndian reports whether the image's numbers are big-endian.
func (img *Image) BigEndian() bool { return img.be }

// BuildID returns the GNU build ID in hexadecimal, or "" when there is none.
func (img *Image) BuildID() string { return img.buildID }

// Type returns the ELF type: ET_EXEC for a vmlinux, ET_DYN for a shared library
// or a position-independent executable, ET_REL for a kernel module or an object
// file.
func (img *Image) Type() elf.Type { return img.file.Type }

// Sections returns the sections with an address, in the file's order.
func (img *Image) Sections() []Section { return img.sections }

// Segment is a part of the file that a running program has in memory.
type Segment struct {
	Addr     uint64 // link-time address
	Offset   uint64 // bytes from the file's start
	FileSize uint64 // bytes
}

// Segments returns the parts of the file that are loaded (PT_LOAD), in its order.
func (img *Image) Segments() []Segment {
	var out []Segment
	for _, p := range img.file.Progs {
		if p.Type == elf.PT_LOAD {
			out = append(out, Segment{p.Vaddr, p.Off, p.Filesz})
		}
	}
	return out
}

// Contents returns the n bytes that the image has at a link-time address: a part of
// the file, which must not be changed.
func (img *Image) Contents(addr, n uint64) ([]byte, error) {
	var out []byte
	err := img.guard(func() error {
		d, ok, err := img.contents(addr, n)
		if err == nil && !ok {
			err = fmt.Errorf("%s: the file has nothing at %#x", img.path, addr)
		}
		out = d
		return err
	})
	return out, err
}

// contents is Contents for code that is guarded. ok is false for what is not in the
// file.
func (img *Image) contents(addr, n uint64) (out []byte, ok bool, err error) {
	src := source{img.path, img.file, img.data}
	for _, sec := range img.file.Sections {
		if sec.Flags&elf.SHF_ALLOC == 0 || sec.Type == elf.SHT_NOBITS || addr < sec.Addr || addr-sec.Addr >= sec.FileSize {
			continue
		}
		d, err := src.sectionData(sec)
		if err != nil {
			return nil, false, err
		}
		off := addr - sec.Addr
		return d[min(off, uint64(len(d))):min(off+n, uint64(len(d)))], true, nil
	}
	return nil, false, nil
}

// SectionAt returns the section that holds a link-time address, or nil.
func (img *Image) SectionAt(addr uint64) *Section {
	for i := range img.sections {
		s := &img.sections[i]
		if addr >= s.Addr && addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

// executable reports whether an address is in a section of instructions. Linkers
// give functions that they dropped an address that is not (0, 1, -1).
func (img *Image) executable(addr uint64) bool {
	for i := range img.sections {
		s := &img.sections[i]
		if s.Exec && addr >= s.Addr && addr-s.Addr < s.Size {
			return true
		}
	}
	return false
}

func (img *Image) errorf(section string, off uint64, format string, args ...any) error {
	return &FormatError{Path: img.path, Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
}

func newImage(path string, data []byte, onDisk bool) (*Image, error) {
	var img *Image
	err := mapping.Guard(func() (err error) {
		img, err = parseImage(path, data, onDisk)
		return err
	})
	if err != nil {
		return nil, err
	}
	return img, nil
}

func parseImage(path string, data []byte, onDisk bool) (*Image, error) {
	if !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return nil, fmt.Errorf("%s: %w%s", path, ErrNotELF, notELFHint(data))
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: damaged ELF file: %w", path, err)
	}
	img := &Image{path: path, file: file, be: file.Data == elf.ELFDATA2MSB}
	img.arch, err = arch.ForELF(file.Machine, file.Class, file.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	img.decoder = slotDecoders[img.arch.Name]
	if img.be || img.arch.WordSize != 8 {
		return nil, fmt.Errorf("%s: only 64-bit little-endian images are supported, this one is %v %v", path, file.Class, file.Data)
	}
	if err := layOut(path, file); err != nil {
		return nil, err
	}
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 {
			img.sections = append(img.sections, Section{Name: s.Name, Addr: s.Addr, Size: s.Size, Exec: s.Flags&elf.SHF_EXECINSTR != 0})
		}
	}
	img.buildID = findBuildID(file)

	img.data, img.symFile, img.symData = data, file, data
	if err := img.takeSections(source{path, file, data}, true); err != nil {
		return nil, err
	}
	if len(img.info) == 0 && onDisk {
		if err := img.openSeparate(); err != nil {
			return nil, err
		}
	}
	if len(img.info) == 0 {
		return nil, img.noDWARF(file)
	}
	return img, nil
}

// findBuildID finds a file's build ID in its note sections.
func findBuildID(file *elf.File) string {
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOTE {
			continue
		}
		d, err := io.ReadAll(io.LimitReader(s.Open(), 1<<16))
		if err != nil {
			continue
		}
		if id := BuildIDIn(d, file.Data == elf.ELFDATA2MSB); id != "" {
			return id
		}
	}
	return ""
}

// BuildIDIn returns the GNU build ID in hexadecimal that some notes hold, as of a
// note section or of /sys/kernel/notes, or "": a note of type NT_GNU_BUILD_ID (3) of
// owner "GNU".
func BuildIDIn(notes []byte, bigEndian bool) string {
	b := buf{d: notes, be: bigEndian}
	for !b.bad && b.p < len(b.d) {
		nameSize, descSize, kind := b.u32(), b.u32(), b.u32()
		name := b.bytes(uint64(nameSize))
		b.skip(uint64(-nameSize & 3))
		desc := b.bytes(uint64(descSize))
		b.skip(uint64(-descSize & 3))
		if kind == 3 && string(name) == "GNU\x00" && len(desc) > 0 {
			return hex.EncodeToString(desc)
		}
	}
	return ""
}

// FileBuildID returns the GNU build ID of an ELF file, or "" when it has none.
func FileBuildID(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	return findBuildID(f), nil
}

func (img *Image) noDWARF(file *elf.File) error {
	hint := "build it with -g"
	if file.Type == elf.ET_EXEC && file.Section("__ksymtab") != nil {
		hint = "for a kernel, install its debug package (Debian: linux-image-$(uname -r)-dbg, Fedora: kernel-debuginfo) or build with CONFIG_DEBUG_INFO=y"
	} else if file.Section(".symtab") == nil {
		hint = "the file is stripped: install its debug package or build it with -g and keep the result"
	}
	if img.buildID != "" {
		hint += fmt.Sprintf("; its build ID is %s", img.buildID)
	}
	return fmt.Errorf("%s: %w: %s", img.path, ErrNoDWARF, hint)
}

// notELFHint recognises files that users take for a vmlinux.
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

// RunningKernelPaths are the places where a vmlinux with debug information of a
// kernel release is usually kept, in order of preference.
func RunningKernelPaths(release string) []string {
	return []string{
		"/usr/lib/debug/boot/vmlinux-" + release,
		"/usr/lib/debug/lib/modules/" + release + "/vmlinux",
		"/lib/modules/" + release + "/build/vmlinux",
		"/lib/modules/" + release + "/vmlinux",
		"/boot/vmlinux-" + release,
	}
}

// FindRunningKernel returns the first of RunningKernelPaths that exists, or an
// error that lists them.
func FindRunningKernel(release string) (string, error) {
	paths := RunningKernelPaths(release)
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", fmt.Errorf("no vmlinux of the running kernel %s found; looked at:\n  %s\n%s",
		release, strings.Join(paths, "\n  "), "install the kernel's debug package, or name an image with -k FILE")
}
