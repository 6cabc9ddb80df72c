// Package origin finds the image that a question is about, and opens it: a file that is named, the program that runs, the debug information or the
// pack of what runs, here or on a server, or what takes their place.
package origin

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelfiles"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/internal/usage"
	"github.com/bpfprologue/bpfprologue/pack"
	"github.com/bpfprologue/bpfprologue/probe"
)

// RunningBTF is the value of --btf without a file.
const RunningBTF = "running"

// Finder finds images and opens them. Its exported fields are what a user chooses.
type Finder struct {
	Vmlinux, Exec string // the image: a kernel's or module's, a program's or library's
	BTF           string // a file with the BTF that takes its place, or RunningBTF
	PackDirs      []string
	PackURLs      []string // of servers of packs
	DebugDirs     []string // with separate debug information
	TypesFile     string   // has types that images do not have
	Recover       string   // by what rules, with commas; or all, none
	NoCache       bool

	AsksFunctions bool // a definition is of functions, not of statically defined probes
	Silent        bool // nobody reads stderr

	warned    map[string]bool                               // see WarnOnce
	findDebug func(buildID string) (path string, err error) // see dwarfloc.Options.FindDebug
	fetchPack func(buildID string) (path string, err error) // nil without servers
	archived  map[string][]byte                             // packs in archives, by what stands for their paths
	images    []*dwarfloc.Image                             // that were opened
	anyProbe  bool                                          // the program that runs is meant since no other file is named, and kernels have no statically defined probes
	notThere  error                                         // why the program that runs is not meant but the kernel: it has nothing of what is asked for, or says nothing
}

// Origin is where an image comes from.
type Origin struct {
	Path   string // of its file
	Kernel bool   // it is a kernel's, or a module's
	// BTF is set if it is made of BTF: of the file with the path, or if that is "" of what the running kernel says
	// about itself, or about the module.
	BTF    bool
	module string
}

// Origin returns where the image comes from that flags and a definition's options name.
func (f *Finder) Origin(o *probe.Options) (from Origin, err error) {
	switch {
	case f.BTF != "" && (f.Vmlinux != "" || f.Exec != "" || o.Exec != ""):
		return from, errors.New("--btf takes the place of an image: it goes with neither -k nor -x")
	case f.BTF == RunningBTF:
		return Origin{Kernel: true, BTF: true, module: o.Module}, nil
	case f.BTF != "" && o.Module != "":
		return from, errors.New("--btf=FILE is about a kernel, and module= about another image")
	case f.BTF != "":
		return Origin{Kernel: true, BTF: true, Path: f.BTF}, nil
	case o.Module != "":
		from = Origin{Kernel: true, module: o.Module}
		if from.Path, err = f.modulePath(o.Module); err != nil && f.Vmlinux == "" {
			return f.insteadOf(from, err)
		}
		return from, err
	case f.Vmlinux != "" && f.Exec != "":
		return from, errors.New("-k and -x name two images; give one")
	case o.Exec != "":
		from.Path, err = procfile.Find(0, o.Exec)
		return from, err
	case f.Exec != "":
		from.Path, err = procfile.Find(0, f.Exec)
		return from, err
	case f.Vmlinux != "":
		if isBTF(f.Vmlinux) {
			return from, usage.Advise(fmt.Errorf("%s: it is BTF, and no image", f.Vmlinux), "to have answers from it: --btf="+f.Vmlinux)
		}
		return Origin{Path: f.Vmlinux, Kernel: true}, nil
	}
	release, err := kernelfiles.RunningRelease()
	if err != nil {
		return from, err
	}
	from.Kernel = true
	from.Path, err = kernelfiles.FindRunningKernel(release, f.allDebugDirs())
	if err != nil {
		from.Path, err = f.elsewhere(kernelfiles.RunningBuildID(""), err)
	}
	if err = withAdvice(err, "install the kernel's debug package, or name an image with -k FILE"); err != nil {
		return f.insteadOf(from, err)
	}
	return from, nil
}

// isBTF reports whether a file has BTF alone, as those in /sys/kernel/btf have (struct btf_header of include/uapi/linux/btf.h).
func isBTF(path string) bool {
	const magic = 0xeb9f
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return false // whoever needs the file says it
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var begin [2]byte
	_, err = io.ReadFull(f, begin[:])
	return err == nil && (binary.LittleEndian.Uint16(begin[:]) == magic || binary.BigEndian.Uint16(begin[:]) == magic)
}

// kernelHasBTF reports whether the running kernel, or a module of it, says what its types are.
func kernelHasBTF(module string) bool {
	_, err := os.Stat(filepath.Join("/sys/kernel/btf", cmp.Or(module, "vmlinux")))
	return err == nil
}

// insteadOf returns what the running kernel says about itself as the origin if there is no file with its
// debug information, and that; or else the error about the file.
func (f *Finder) insteadOf(from Origin, missing error) (Origin, error) {
	var none *kernelfiles.NotFoundError
	if !errors.As(missing, &none) || !kernelHasBTF(from.module) {
		return from, missing
	}
	from.BTF = true
	what := "the running kernel"
	if from.module != "" {
		what = "module " + from.module
	}
	f.WarnOnce(fmt.Sprintf("no debug information of %s found: answers come from its BTF, which knows no inlined functions and no local variables", what))
	return from, nil
}

// WarnOnce tells something on stderr, once.
func (f *Finder) WarnOnce(text string) {
	if !f.warned[text] && !f.Silent {
		if f.warned == nil {
			f.warned = make(map[string]bool)
		}
		f.warned[text] = true
		terminal.Fprintf(screen.Stderr, "prolog-dump: %s\n", text)
	}
}

// OpenFrom opens an image. typesOf is as for Open.
func (f *Finder) OpenFrom(from *Origin, typesOf *dwarfloc.Image) (*dwarfloc.Image, error) {
	if !from.BTF {
		o := f.ImageOptions(typesOf)
		o.Symbols = true
		img, err := f.openWith(from.Path, o)
		switch {
		case errors.Is(err, dwarfloc.ErrNoDWARF) && !from.Kernel:
			return f.openPackOf(from.Path, err)
		case err == nil && inside.AnsweredBy(img) == answers.BySymbols:
			if pack, err := f.openPackOf(from.Path, nil); pack != nil || err != nil {
				return pack, err
			}
			if !f.AsksFunctions {
				return img, nil
			}
			f.WarnOnce("no debug information of " + from.Path + " found: answers come from its symbols, which have no inlined functions, and $arg1, $arg2, ... for what is passed")
		}
		return img, err
	}
	img, err := (*dwarfloc.Image)(nil), error(nil)
	if from.Path == "" {
		img, err = instances.KernelFromBTF(from.module)
	} else {
		img, err = dwarfloc.OpenBTF(from.Path, kernelhas.Arch())
	}
	if err == nil {
		f.images = append(f.images, img)
	}
	return img, err
}

// modulePath finds the file of a module: of the kernel that -k names, or of the running one.
func (f *Finder) modulePath(name string) (string, error) {
	var release string
	var err error
	if f.Vmlinux != "" {
		release, err = kernelfiles.KernelRelease(f.Vmlinux)
	} else {
		release, err = kernelfiles.RunningRelease()
	}
	if err != nil {
		return "", err
	}
	path, err := kernelfiles.FindModule(name, kernelfiles.ModuleDirs(release, f.Vmlinux, f.allDebugDirs()))
	if err != nil && f.Vmlinux == "" {
		path, err = f.elsewhere(kernelfiles.RunningBuildID(name), err)
	}
	return path, withAdvice(err, "install the kernel's debug package, or name the module's file with module=PATH or -k PATH")
}

// withAdvice adds advice to the error for a file that is in none of the usual places.
func withAdvice(err error, advice string) error {
	var none *kernelfiles.NotFoundError
	if errors.As(err, &none) {
		return usage.Advise(err, advice)
	}
	return err
}

// elsewhere returns the pack of a build, or the file with its debug information from a server. missing is why it is
// needed.
func (f *Finder) elsewhere(buildID string, missing error) (string, error) {
	if path := f.findPack(buildID); path != "" {
		return path, nil
	}
	return f.fetch(buildID, missing)
}

// findPack returns what open takes for the pack of a build, alone, in an archive or from a server, or "" if there is none.
func (f *Finder) findPack(buildID string) string {
	path, archived, err := pack.Find(buildID, f.allPackDirs())
	if err != nil && f.fetchPack != nil && buildID != "" {
		found, failed := f.fetchPack(buildID)
		switch {
		case failed == nil:
			return found
		case !errors.Is(failed, fs.ErrNotExist):
			f.WarnOnce(failed.Error())
		}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.WarnOnce(err.Error())
		}
		return ""
	}
	if archived == nil {
		return path
	}
	path += ":" + buildID
	if f.archived == nil {
		f.archived = make(map[string][]byte)
	}
	f.archived[path] = archived
	return path
}

// allPackDirs returns the directories with packs: the user's choice, then the usual ones.
func (f *Finder) allPackDirs() []string { return append(slices.Clip(f.PackDirs), pack.Dirs()...) }

// openPackOf opens the pack of a program without debug information. missing is the error about that.
func (f *Finder) openPackOf(path string, missing error) (*dwarfloc.Image, error) {
	id, err := dwarfloc.BuildID(path)
	if err != nil {
		return nil, missing
	}
	found := f.findPack(id)
	if found == "" {
		return nil, missing
	}
	img, err := f.Open(found, nil)
	if err == nil {
		err = OfPack(found, img, path, id)
	}
	return img, err
}

// OfPack returns an error unless a program's build ID is that of a pack.
func OfPack(pack string, img *dwarfloc.Image, program, id string) error {
	if img.BuildID() == id {
		return nil
	}
	return fmt.Errorf("%s: %w: the pack is of build ID %s, %s has %s", pack, instances.ErrImageMismatch, img.BuildID(), program, id)
}

// ImageOf returns the path of the image that a verb is about: its argument, or what -k or -x names. rest are the other arguments.
func (f *Finder) ImageOf(args []string) (path string, rest []string, err error) {
	switch {
	case f.Vmlinux != "" && f.Exec != "":
		return "", nil, usage.Errorf("-k and -x name two images")
	case f.Vmlinux != "":
		return f.Vmlinux, args, nil
	case f.Exec != "":
		path, err = procfile.Find(0, f.Exec)
		return path, args, err
	case len(args) == 0:
		return "", nil, usage.Errorf("no image: name it, or use -k or -x")
	}
	return args[0], args[1:], nil
}

// OnlyImageOf is imageOf for a verb with no other arguments.
func (f *Finder) OnlyImageOf(args []string) (path string, err error) {
	path, rest, err := f.ImageOf(args)
	if err == nil && len(rest) > 0 {
		err = usage.Errorf("%q: the image is already named", rest[0])
	}
	return path, err
}
