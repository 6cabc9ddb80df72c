package instances

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// kernelNotes is where the kernel shows its build ID.
const kernelNotes = "/sys/kernel/notes"

// ErrImageMismatch is wrapped by Find's error if the running code has another build ID than
// the image.
var ErrImageMismatch = errors.New("the image is not what runs")

// ErrNotSupported is wrapped by errors about features that the running kernel lacks.
var ErrNotSupported = errors.New("not supported by the running kernel")

// Running is where the code of an image runs: in the running kernel, or in processes.
type Running struct {
	img      *dwarfloc.Image
	pmu      string            // "kprobe" or "uprobe"
	path     string            // of the file that processes run
	identity string            // of that file when it was read, or "" if it was not
	target   plan.Target       // of plans
	sections map[string]uint64 // of a module: run-time addresses by name
}

// FindOptions are options of Find. The zero FindOptions are right unless the image is a copy
// of the file that runs.
type FindOptions struct {
	// Path is the file that processes run, if that is not the image's own file. With Path the
	// image is taken for a program or library even if it looks like a kernel.
	Path string
	// Sleep makes Target.Reads prologue.ReadSleep for programs and libraries if the kernel can do that:
	// what is on pages that are not resident is fetched too. The user's programs may then sleep, and
	// must be able to: the kernel takes fewer kinds of maps in them.
	Sleep bool
	// Force skips the comparison of build IDs. With another image every address is wrong.
	Force bool
}

// Find finds where an image runs: in the running kernel if it is a kernel or a kernel module,
// else in the processes that run its file. The build IDs of the image and of the running code
// must be equal. Finding a kernel's load address needs root, and kernel.kptr_restrict of 0
// or 1.
//
// The error wraps ErrImageMismatch if the build IDs differ, and fs.ErrNotExist if the file
// does not exist or the module is not loaded.
func Find(img *dwarfloc.Image, o FindOptions) (*Running, error) {
	kernel, err := place.IsKernel(img)
	if err != nil {
		return nil, err
	}
	if running := kernelhas.Arch(); img.Arch().On(running) == nil {
		return nil, fmt.Errorf("%w: %s is for %s, and the running kernel for %s", ErrImageMismatch, img.Path(), img.Arch().Name, running.Name)
	}
	if kernel && o.Path == "" {
		return inKernel(img, o.Force)
	}
	return inFile(img, o)
}

// inKernel finds the code of a kernel or of a loaded module.
func inKernel(img *dwarfloc.Image, force bool) (*Running, error) {
	r := &Running{img: img, pmu: "kprobe", target: plan.Target{
		Kernel: kernelhas.Arch(), Reads: prologue.ReadKernel, SignExtends: kernelhas.SignExtends(), KprobeMulti: haveKprobeMulti(),
	}}
	if kernelhas.Casts() {
		r.target.Reads = prologue.ReadCast
	}
	notes := kernelNotes
	if inside.File(img).IsRelocatable() {
		module := filepath.Join("/sys/module", place.ModuleName(img))
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
	if inside.File(img).IsRelocatable() {
		return r, nil
	}
	var err error
	r.target.Slide, err = kernelSlide(img)
	return r, err
}

// inFile finds an image's code in the processes that run it from a file.
func inFile(img *dwarfloc.Image, o FindOptions) (*Running, error) {
	path := o.Path
	if path == "" {
		path = img.Path()
	}
	identity := ownIdentity(inside.File(img))
	if path != img.Path() {
		identity = ""
	}
	if identity == "" && !o.Force {
		other, err := image.Open(path, nil)
		if err != nil {
			return nil, err
		}
		id := other.BuildID()
		identity = ownIdentity(other)
		if err := other.Close(); err != nil {
			return nil, err
		}
		if id == "" || id != img.BuildID() {
			return nil, fmt.Errorf("%w: %s has build ID %s, %s has %s", ErrImageMismatch, path, orNone(id), img.Path(), orNone(img.BuildID()))
		}
	}
	r := &Running{img: img, pmu: "uprobe", path: path, identity: identity, target: plan.Target{
		Kernel: kernelhas.Arch(), Reads: prologue.ReadUser, SignExtends: kernelhas.SignExtends(), UprobeMulti: haveUprobeMulti(),
	}}
	if o.Sleep && kernelhas.Sleeps() {
		r.target.Reads = prologue.ReadSleep
	}
	return r, nil
}

// ownIdentity returns the identity of a file without that of its separate debug file.
func ownIdentity(f *image.File) string {
	own, _, _ := strings.Cut(f.Identity().Key, " ")
	return own
}

// Target returns plan.Options.Target for plans to be attached here.
//
// Slide is the KASLR offset of the kernel in bytes. It is 0 for modules (sections are placed
// individually) and for user space (each process has its own load bias). KprobeMulti and
// UprobeMulti are set if the kernel has such links, SignExtends if it has such instructions, and
// Reads is prologue.ReadCast for a kernel that can do that. The kernel is asked, not its version.
func (r *Running) Target() plan.Target { return r.target }

// targetOf returns Target, with t.Reads if that is not automatic.
func (r *Running) targetOf(t plan.Target) plan.Target {
	out := r.target
	if t.Reads != prologue.ReadAuto {
		out.Reads = t.Reads
	}
	return out
}

// address converts a link-time address to the address that a probe needs: the run-time
// address for a kprobe, the offset in the file for a uprobe.
func (r *Running) address(link uint64) (uint64, error) {
	switch {
	case r.pmu == "uprobe":
		return inside.File(r.img).FileOffset(link)
	case r.sections == nil:
		return link + r.target.Slide, nil
	}
	s := inside.File(r.img).SectionAt(link)
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
	running := elfnote.BuildID(notes, binary.NativeEndian)
	switch {
	case running == "":
		return fmt.Errorf("%s: no build ID", path)
	case running == img.BuildID():
		return nil
	case inside.File(img).IsRelocatable():
		return fmt.Errorf("%w: the loaded module has build ID %s, %s has %s", ErrImageMismatch, running, img.Path(), orNone(img.BuildID()))
	}
	return fmt.Errorf("%w: the running kernel has build ID %s, %s has %s; give the vmlinux of this kernel's debug package", ErrImageMismatch, running, img.Path(), orNone(img.BuildID()))
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

// notLoadedError is the error for a module that is not loaded. It is the module's directory
// below /sys/module.
type notLoadedError string

func (e notLoadedError) Error() string {
	return fmt.Sprintf("the module is not loaded: there is no %s: load it (modprobe %s)", string(e), filepath.Base(string(e)))
}

func (e notLoadedError) Is(target error) bool { return target == fs.ErrNotExist }

// findSections reads where the kernel has loaded a module's sections.
func (r *Running) findSections(module string) error {
	dir := filepath.Join(module, "sections")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return notLoadedError(module)
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
	marks, err := inside.File(img).SymbolAddresses("_stext", "_text")
	if err != nil {
		return 0, err
	}
	for _, name := range []string{"_stext", "_text"} {
		linked, ok := marks[name]
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
	return 0, errors.New("/proc/kallsyms shows no address of _stext or _text: that needs root, or CAP_SYSLOG, and kernel.kptr_restrict of 0 or 1")
}

// kallsym returns the run-time address of a kernel symbol, or 0.
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
