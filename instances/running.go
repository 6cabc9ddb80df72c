package instances

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Errors of loading and attaching, for errors.Is.
var (
	// ErrOtherImage: what runs is not what the image describes.
	ErrOtherImage = errors.New("the image is not what runs")
	// ErrNotSupported: the running kernel lacks what is needed.
	ErrNotSupported = errors.New("not supported by the running kernel")
	// ErrNowhere: a plan can only be attached where its image runs.
	ErrNowhere = errors.New("nothing says where the plan's image runs: InKernel and InFile do")
	// ErrNotRunning: a kernel module is not loaded.
	ErrNotRunning = errors.New("the module is not loaded")
)

// Running is where the code of an image runs: in the running kernel, or in processes.
// It was compared with the image when it was made.
type Running struct {
	img      *dwarfloc.Image
	pmu      string            // "kprobe" or "uprobe"
	path     string            // of what processes run
	slide    uint64            // of a kernel
	sections map[string]uint64 // of a module: run-time addresses by name
	multi    Multi
}

// Find finds where an image runs: in the running kernel (InKernel) when it is a kernel's
// or a module's, else in the processes that run its own file (InFile).
func Find(img *dwarfloc.Image, force bool) (*Running, error) {
	_, kernel, err := img.AddressOf("_stext")
	if err != nil {
		return nil, err
	}
	if kernel || img.LoadsApart() {
		return InKernel(img, force)
	}
	return InFile(img, "", force)
}

// InKernel finds the running kernel's, or a loaded module's, code of an image. Its build
// ID must be the image's, unless force is set: else every address would be wrong.
func InKernel(img *dwarfloc.Image, force bool) (*Running, error) {
	r := &Running{img: img, pmu: "kprobe", multi: haveKprobeMulti()}
	notes := "/sys/kernel/notes"
	if img.LoadsApart() {
		module := filepath.Join("/sys/module", moduleName(img.Path()))
		if err := r.findSections(module); err != nil {
			return nil, err
		}
		notes = filepath.Join(module, "notes/.note.gnu.build-id")
	}
	if !force {
		if err := checkNotes(img, notes); err != nil {
			return nil, err
		}
	}
	if img.LoadsApart() {
		return r, nil
	}
	var err error
	r.slide, err = kernelSlide(img)
	return r, err
}

// InFile is an image's code in the processes that run it from a file; "" is the image's
// own. Its build ID must be the image's, unless force is set.
func InFile(img *dwarfloc.Image, path string, force bool) (*Running, error) {
	if path == "" {
		path = img.Path()
	}
	if !force && path != img.Path() {
		id, err := dwarfloc.FileBuildID(path)
		if err != nil {
			return nil, err
		}
		if id == "" || id != img.BuildID() {
			return nil, fmt.Errorf("%w: %s has build ID %s, %s has %s", ErrOtherImage, path, orNone(id), img.Path(), orNone(img.BuildID()))
		}
	}
	return &Running{img: img, pmu: "uprobe", path: path, multi: haveUprobeMulti()}, nil
}

// Slide is how far the running kernel's code is from the image's link-time addresses, in
// bytes: 0 without KASLR, of a module, and in processes, where no two need be alike.
func (r *Running) Slide() uint64 { return r.slide }

// Reads is how programs read memory there.
func (r *Running) Reads() prologue.Reads {
	if r.pmu == "uprobe" {
		return prologue.ReadUser
	}
	return prologue.ReadKernel
}

// Multi is which sites the running kernel can probe many of at once: Options.Multi.
func (r *Running) Multi() Multi { return r.multi }

// address is what a probe at a link-time address is asked for with: the run-time
// address of a kprobe, the offset in the file of a uprobe.
func (r *Running) address(link uint64) (uint64, error) {
	switch {
	case r.pmu == "uprobe":
		return FileOffset(r.img, link)
	case r.sections == nil:
		return link + r.slide, nil
	}
	s := r.img.SectionAt(link)
	if s == nil {
		return 0, fmt.Errorf("%s: no section has the address %#x", r.img.Path(), link)
	}
	at, ok := r.sections[s.Name]
	if !ok {
		return 0, fmt.Errorf("%s: the kernel has freed the module's section %s", r.img.Path(), s.Name)
	}
	return at + link - s.Addr, nil
}

// checkNotes compares a build ID of the running kernel with the image's.
func checkNotes(img *dwarfloc.Image, path string) error {
	notes, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the running build ID: %w", err)
	}
	running := dwarfloc.BuildIDIn(notes, img.BigEndian())
	switch {
	case running == "":
		return fmt.Errorf("%s: no build ID", path)
	case running == img.BuildID():
		return nil
	case img.LoadsApart():
		return fmt.Errorf("%w: the loaded module has build ID %s, %s has %s", ErrOtherImage, running, img.Path(), orNone(img.BuildID()))
	}
	return fmt.Errorf("%w: the running kernel has build ID %s, %s has %s; give the vmlinux of this kernel's debug package", ErrOtherImage, running, img.Path(), orNone(img.BuildID()))
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// moduleName is what the kernel calls the module of a file.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// findSections reads where the kernel has loaded a module's sections.
func (r *Running) findSections(module string) error {
	dir := filepath.Join(module, "sections")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: there is no %s: load it (modprobe %s)", ErrNotRunning, module, filepath.Base(module))
	}
	if err != nil {
		return err
	}
	r.sections = make(map[string]uint64)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		addr, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if addr == 0 {
			return fmt.Errorf("%s shows no address: that needs root, and kernel.kptr_restrict of 0 or 1", path)
		}
		r.sections[e.Name()] = addr
	}
	return nil
}

// kernelSlide compares a symbol of the image with /proc/kallsyms: _stext, which all
// architectures have, or _text.
func kernelSlide(img *dwarfloc.Image) (uint64, error) {
	for _, name := range []string{"_stext", "_text"} {
		linked, ok, err := img.AddressOf(name)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		running, err := kallsym(name)
		if err != nil {
			return 0, err
		}
		if running != 0 {
			return running - linked, nil
		}
	}
	return 0, errors.New("/proc/kallsyms shows no address of _stext or _text: that needs root, and kernel.kptr_restrict of 0 or 1")
}

// kallsym is the run-time address of a kernel symbol, or 0.
func kallsym(name string) (uint64, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 3 && fields[2] == name {
			return strconv.ParseUint(fields[0], 16, 64)
		}
	}
	return 0, lines.Err()
}

// FileOffset is where in the file the instruction at a link-time address is, as
// uprobes want it, in bytes.
func FileOffset(img *dwarfloc.Image, addr uint64) (uint64, error) {
	for _, s := range img.Segments() {
		if addr >= s.Addr && addr-s.Addr < s.FileSize {
			return addr - s.Addr + s.Offset, nil
		}
	}
	return 0, fmt.Errorf("%s: the file has no code at %#x", img.Path(), addr)
}
