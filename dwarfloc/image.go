package dwarfloc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/abi"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/body"
	"github.com/bpfprologue/bpfprologue/internal/boundary"
	"github.com/bpfprologue/bpfprologue/internal/claim"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/elsewhere"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/preempt"
	"github.com/bpfprologue/bpfprologue/internal/qualify"
	"github.com/bpfprologue/bpfprologue/internal/resolve"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/typesource"
	"github.com/bpfprologue/bpfprologue/types"
)

// Image is one ELF file with its DWARF. Several
// goroutines may call its methods at once, and use its sites, variables and types: see Close.
type Image struct {
	file  *image.File
	r     *entries.Image // nil where something else answers than debug information
	by    imageSource    // what answers
	o     Options
	lost  *MissingError // see Missing
	flags uint32        // of the ELF file

	leftOut rule.Set // the rules that Options.Recover does not name

	asideMu   sync.Mutex
	aside     sync.WaitGroup // work that Close waits for
	closed    bool           // no more of it begins
	unitsOnce sync.Once
	units     []unit // by number; see unitAt

	globals    globals
	notes      notes
	names      qualify.Names
	preempted  preempt.Variables
	exceptions sync.Once
	mayUnwind  bool // see unwound
}

// Options says how to open an image. The zero value is the default.
type Options struct {
	// CacheDir is a directory in which to keep the image's index for the next process that
	// opens the image; if it is "", the index is not kept. Neither is that of an image
	// without a build ID.
	CacheDir string
	// CacheLimit is the size in bytes that all indexes in CacheDir may have together: the
	// least recently used ones are removed. 0 means 1 GiB.
	CacheLimit int64
	// Warn, if not nil, is called when a kept index could not be used or written. The
	// image is then scanned as it would be without a cache.
	Warn func(error)
	// Progress, if not nil, is called while the image is scanned, by several goroutines
	// at once. done and total are bytes of .debug_info.
	Progress func(done, total uint64)
	// TypesOf completes types that the image only declares: for a module, it is the image
	// of the kernel that the module was built for. If it is closed, so is this image.
	TypesOf *Image
	// Partial says that queries answer although some split units (-gsplit-dwarf) are not there, about the
	// others: Image.Missing tells which. Otherwise, and if none is there, that is an error of each query.
	Partial bool
	// Symbols says that what the debug information does not have is answered by symbols: functions of which these say where they
	// begin, and the calling convention where the first words are that they get. Otherwise a program or library without debug
	// information is an error.
	Symbols bool
	// KernelTypes, if not nil, returns the BTF of the kernel that a pack is of (/sys/kernel/btf/vmlinux), if the pack has
	// left out the types that are there.
	KernelTypes func() ([]byte, error)
	// Recover names the rules by which values are looked for that the debug information has lost: "caller", "moved", "table", "operand",
	// "call" and "member" (see [loc.Rule]). nil means all of them, and an empty list that is not nil none.
	Recover []string
	// MaxUnpacked bounds how many bytes compressed sections, and a file that is compressed as a
	// whole, may unpack to in all. 0 means 24 MiB and 32 times what they are unpacked from, which
	// no compiler's output reaches.
	MaxUnpacked uint64
	// DebugDirs are the directories below which separate debug information is looked for, in this order:
	// by build ID in .build-id, and by the file's own path. nil means /usr/lib/debug; an empty list
	// that is not nil means that only the file's own directory is looked into.
	DebugDirs []string
	// FindDebug, if not nil, is called with the build ID of a file that has no debug information, if
	// DebugDirs have none either. It returns the path of a file that does, or an error, which Open
	// then wraps. See debuginfod.Client.Finder.
	FindDebug func(buildID string) (path string, err error)
}

func (o *Options) image() *image.Options {
	if o == nil {
		return nil
	}
	return &image.Options{MaxUnpacked: o.MaxUnpacked, DebugDirs: o.DebugDirs, FindDebug: o.FindDebug}
}

// Open opens an ELF file with DWARF; nil Options means the defaults. It reads headers and
// decompresses and relocates sections; the debug information is scanned by the first
// query that needs it.
//
// The error wraps ErrNotELF if the file is not ELF, ErrNoDWARF if it has no
// debug information, and ErrDamaged if a section is damaged.
func Open(path string, o *Options) (*Image, error) {
	f, err := image.Open(path, o.image())
	if err != nil {
		return nil, err
	}
	img, err := newImage(f, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return img, nil
}

// FromBytes is Open for an ELF file in memory. Errors give name as its path. The bytes
// must not change while the image is in use.
func FromBytes(name string, data []byte, o *Options) (*Image, error) {
	f, err := image.FromBytes(name, data, o.image())
	if err != nil {
		return nil, err
	}
	return newImage(f, o)
}

func newImage(f *image.File, o *Options) (*Image, error) {
	img := &Image{file: f}
	if o != nil {
		img.o = *o
	}
	var err error
	if img.leftOut, err = rule.LeftOut(img.o.Recover); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	if pack, err := f.SectionContents(packfile.Section); err != nil || pack != nil {
		if err != nil {
			return nil, err
		}
		t, err := answers.OpenPack(f, pack, img.o.KernelTypes)
		if err != nil {
			return nil, err
		}
		img.by = answered{img, t}
		return img, nil
	}
	sections, err := f.DebugSections()
	if errors.Is(err, ErrNoDWARF) {
		if t, other := img.symbolsAlone(); t != nil || other != nil {
			img.by = answered{img, t}
			return img, other
		}
		if img.o.Symbols {
			err = fmt.Errorf("%w; it has no symbols of functions and no statically defined probes either", err)
		}
	}
	if err != nil {
		return nil, err
	}
	img.by = dwarfImage{img}
	if err := f.Guard(func() error { img.flags = elfFlags(f); return nil }); err != nil {
		return nil, err
	}
	data := dw.New(dw.Sections{
		Path: f.Path(), BigEndian: f.BigEndian(), WordSize: f.Arch().WordSize,
		EhFrameAddr: sectionAddr(f, ".eh_frame"), ExceptAddr: sectionAddr(f, ".gcc_except_table"), Errorf: damaged(f),
	}, sections)
	lost, err := elsewhere.Open(f, data, img.o.Partial, func(m *elsewhere.Missing) error { return (*MissingError)(m) })
	if err != nil {
		return nil, err
	}
	img.lost = (*MissingError)(lost)
	id, key := f.Identity(), f.BuildID()
	if img.lost != nil {
		key = "" // the index of a part would take the place of the whole one's
	}
	img.r = &entries.Image{File: f, Data: data, Code: body.New(f, data), Machine: img.machine(), Preempted: &img.preempted, LeftOut: img.leftOut, Alone: img.o.TypesOf == nil}
	img.r.Index = index.New(data, index.Options{
		Dir: img.o.CacheDir, Limit: img.o.CacheLimit, Key: key,
		Identity: id.Key, Private: id.Private, Size: id.Size, Contents: f.Digest,
		Warn: img.o.Warn, Progress: img.o.Progress,
		Guard: img.guardFiles, Changed: img.Changed, ReadAside: img.readAside,
		Symbols: f.SymbolIndex, UseSymbols: f.UseSymbolIndex, UseAsked: f.UseAsked,
	})
	var other typesource.DWARF[types.Type]
	if o := img.o.TypesOf; o != nil && o.r != nil {
		other = o.r.Types
	}
	img.r.Types = typesource.NewDWARF(img.r.Index, typesource.DWARFOptions[types.Type]{
		BigEndian: f.BigEndian(), Other: other, Guard: img.guard, Prepare: func() error { return img.prepare(false) },
	})
	return img, nil
}

// damaged returns a function for errors about a file's debug information. It may be in a
// separate file, which the error then names.
func damaged(f *image.File) func(section string, off uint64, format string, args ...any) error {
	return func(section string, off uint64, format string, args ...any) error {
		e := &image.FormatError{Path: f.Path(), Section: section, Offset: off, Msg: fmt.Sprintf(format, args...)}
		if path := f.DebugPath(); path != "" && strings.HasPrefix(section, ".debug_") {
			e.Path = path
		}
		return e
	}
}

// elfFlags returns e_flags of a file's header, which say which calling convention an image has.
func elfFlags(f *image.File) uint32 {
	at := 48
	if f.Arch().WordSize < 8 {
		at = 36
	}
	r := bin.Reader{D: f.Contents(), P: at, BigEndian: f.BigEndian()}
	return r.U32()
}

func sectionAddr(f *image.File, name string) uint64 {
	for _, s := range f.Sections() {
		if s.Name == name {
			return s.Addr
		}
	}
	return 0
}

// ready is inside.Ready.
func (img *Image) ready() bool {
	return img.r != nil && img.prepare(true) == nil && img.r.Index.Kept != nil
}

// controls is inside.Controls.
func (img *Image) controls() map[string]claim.Count {
	if img.r == nil {
		return nil
	}
	return resolve.ControlsOf(img.r).Counts()
}

// elf is inside.File.
func (img *Image) elf() *image.File { return img.file }

// Arch returns the architecture of the image's code.
func (img *Image) Arch() *arch.Arch { return img.file.Arch() }

// Path returns the name by which the image was opened.
func (img *Image) Path() string { return img.file.Path() }

// Close releases the file: at once, or when the last call that is under way in another goroutine has
// ended. Such calls, and those that need the file after that, return an error that wraps
// [os.ErrClosed], of sites, variables and types too. What has been read stays valid. Methods without an
// error then answer with what they know, as [Type.String] says, or with a part: Changed
// returns the error.
func (img *Image) Close() error {
	if err := img.keepDerived(); err != nil && !errors.Is(err, os.ErrClosed) && img.o.Warn != nil {
		img.o.Warn(err)
	}
	err := img.file.Close()
	if img.r != nil {
		err = errors.Join(err, img.r.Index.Close())
	}
	img.asideMu.Lock()
	img.closed = true
	img.asideMu.Unlock()
	img.aside.Wait()
	return err
}

// guard runs a function that reads the image's files or its kept index.
func (img *Image) guard(f func() error) error { return img.by.guard(f) }

// guardFiles is guard for the files alone: the image's, and that which completes its types.
func (img *Image) guardFiles(f func() error) error {
	if other := img.o.TypesOf; other != nil {
		return other.guard(func() error { return img.file.Guard(f) })
	}
	return img.file.Guard(f)
}

// Changed returns an error that wraps ErrChanged if a file of the image, or of the one that completes its types, was truncated or
// written to since it was opened, or os.ErrClosed if it was closed. It takes a system call, so call it once, at the end of a longer
// operation.
func (img *Image) Changed() error {
	if other := img.o.TypesOf; other != nil {
		return cmp.Or(img.file.Changed(), other.Changed())
	}
	return img.file.Changed()
}

// prepare finds the units.
func (img *Image) prepare(symbols bool) error {
	if img.r == nil {
		return img.notDescribed("what is not about its own functions")
	}
	if err := img.r.Index.Prepare(symbols); err != nil {
		return err
	}
	img.unitsOnce.Do(func() {
		img.r.Prepare()
		img.units = make([]unit, len(img.r.Units))
		for i := range img.units {
			img.units[i].Unit, img.units[i].img = &img.r.Units[i], img
		}
	})
	return nil
}

// readAside reads in the background what most queries need in the end.
func (img *Image) readAside(symbols bool) {
	img.asideMu.Lock()
	defer img.asideMu.Unlock()
	if img.closed {
		return
	}
	aside := func(f func()) {
		img.aside.Go(func() {
			_ = img.r.Index.Work(func() error { f(); return nil })
		})
	}
	if symbols {
		aside(img.r.Code.ReadTables) // first: that an image is a kernel's is asked next
	}
	aside(func() { _ = img.r.Data.FrameTable() })
	if symbols {
		aside(func() { img.file.FunctionSymbols(0, 0) }) // any range makes it read and sort them
	}
}

// machine returns what decides how the image's functions pass values.
func (img *Image) machine() abi.Machine { return abi.Machine{Arch: img.Arch(), Flags: img.flags} }

// unit is a unit of the image, with what sites share.
type unit struct {
	*entries.Unit
	img *Image

	chain   atomic.Pointer[chain]         // the last one that was read
	checked atomic.Pointer[boundary.Code] // the last one of checkInstructions that nobody uses now
	kept    index.OfRecords               // ways of its bodies: see keptways.go
}

// forget frees what has been derived from the unit, and what was read of it. Whoever walks a
// whole image forgets each unit: all of them take 100 MB for a kernel. What is needed again
// is read again.
func (u *unit) forget() {
	u.img.r.Index.Walked(u.Unit.Unit)
	u.kept.Keep(u.img.r.Index, u.Number)
	u.Forget()
	u.chain.Store(nil)
	u.checked.Store(nil)
}

// of returns the image's unit for a unit of the debug information.
func (img *Image) of(u *dw.Unit) *unit { return &img.units[u.Number] }
