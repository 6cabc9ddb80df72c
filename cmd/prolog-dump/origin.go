package main

import (
	"cmp"
	"errors"
	"fmt"
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

// runningBTF is the value of --btf without a file.
const runningBTF = "running"

// origin is where an image comes from.
type origin struct {
	path   string // of its file
	kernel bool   // it is a kernel's, or a module's
	// btf is set if it is made of BTF: of the file with the path, or if that is "" of what the running kernel says
	// about itself, or about the module.
	btf    bool
	module string
}

// origin returns where the image comes from that flags and a definition's options name.
func (s *settings) origin(o *probe.Options) (from origin, err error) {
	switch {
	case s.btf != "" && (s.vmlinux != "" || s.exec != "" || o.Exec != ""):
		return from, errors.New("--btf takes the place of an image: it goes with neither -k nor -x")
	case s.btf == runningBTF:
		return origin{kernel: true, btf: true, module: o.Module}, nil
	case s.btf != "" && o.Module != "":
		return from, errors.New("--btf=FILE is about a kernel, and module= about another image")
	case s.btf != "":
		return origin{kernel: true, btf: true, path: s.btf}, nil
	case o.Module != "":
		from = origin{kernel: true, module: o.Module}
		if from.path, err = s.modulePath(o.Module); err != nil && s.vmlinux == "" {
			return s.insteadOf(from, err)
		}
		return from, err
	case s.vmlinux != "" && s.exec != "":
		return from, errors.New("-k and -x name two images; give one")
	case o.Exec != "":
		from.path, err = procfile.Find(0, o.Exec)
		return from, err
	case s.exec != "":
		from.path, err = procfile.Find(0, s.exec)
		return from, err
	case s.vmlinux != "":
		return origin{path: s.vmlinux, kernel: true}, nil
	}
	release, err := kernelfiles.RunningRelease()
	if err != nil {
		return from, err
	}
	from.kernel = true
	from.path, err = kernelfiles.FindRunningKernel(release, s.allDebugDirs())
	if err != nil {
		from.path, err = s.elsewhere(kernelfiles.RunningBuildID(""), err)
	}
	if err = withAdvice(err, "install the kernel's debug package, or name an image with -k FILE"); err != nil {
		return s.insteadOf(from, err)
	}
	return from, nil
}

// kernelHasBTF reports whether the running kernel, or a module of it, says what its types are.
func kernelHasBTF(module string) bool {
	_, err := os.Stat(filepath.Join("/sys/kernel/btf", cmp.Or(module, "vmlinux")))
	return err == nil
}

// insteadOf returns what the running kernel says about itself as the origin if there is no file with its
// debug information, and that; or else the error about the file.
func (s *settings) insteadOf(from origin, missing error) (origin, error) {
	var none *kernelfiles.NotFoundError
	if !errors.As(missing, &none) || !kernelHasBTF(from.module) {
		return from, missing
	}
	from.btf = true
	what := "the running kernel"
	if from.module != "" {
		what = "module " + from.module
	}
	s.warnOnce(fmt.Sprintf("no debug information of %s found: answers come from its BTF, which knows no inlined functions and no local variables", what))
	return from, nil
}

// warnOnce tells something on stderr, once.
func (s *settings) warnOnce(text string) {
	if !s.warned[text] && !s.silent {
		if s.warned == nil {
			s.warned = make(map[string]bool)
		}
		s.warned[text] = true
		terminal.Fprintf(screen.Stderr, "prolog-dump: %s\n", text)
	}
}

// openOrigin opens an image. typesOf is as for open.
func (s *settings) openOrigin(from *origin, typesOf *dwarfloc.Image) (*dwarfloc.Image, error) {
	if !from.btf {
		o := s.imageOptions(typesOf)
		o.Symbols = true
		img, err := s.openWith(from.path, o)
		switch {
		case errors.Is(err, dwarfloc.ErrNoDWARF) && !from.kernel:
			return s.openPackOf(from.path, err)
		case err == nil && inside.AnsweredBy(img) == answers.BySymbols:
			if pack, err := s.openPackOf(from.path, nil); pack != nil || err != nil {
				return pack, err
			}
			if !s.asksFunctions {
				return img, nil
			}
			s.warnOnce("no debug information of " + from.path + " found: answers come from its symbols, which have no inlined functions, and $arg1, $arg2, ... for what is passed")
		}
		return img, err
	}
	img, err := (*dwarfloc.Image)(nil), error(nil)
	if from.path == "" {
		img, err = instances.KernelFromBTF(from.module)
	} else {
		img, err = dwarfloc.OpenBTF(from.path, kernelhas.Arch())
	}
	if err == nil {
		s.images = append(s.images, img)
	}
	return img, err
}

// modulePath finds the file of a module: of the kernel that -k names, or of the running one.
func (s *settings) modulePath(name string) (string, error) {
	var release string
	var err error
	if s.vmlinux != "" {
		release, err = kernelfiles.KernelRelease(s.vmlinux)
	} else {
		release, err = kernelfiles.RunningRelease()
	}
	if err != nil {
		return "", err
	}
	path, err := kernelfiles.FindModule(name, kernelfiles.ModuleDirs(release, s.vmlinux, s.allDebugDirs()))
	if err != nil && s.vmlinux == "" {
		path, err = s.elsewhere(kernelfiles.RunningBuildID(name), err)
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
func (s *settings) elsewhere(buildID string, missing error) (string, error) {
	if path := s.findPack(buildID); path != "" {
		return path, nil
	}
	return s.fetch(buildID, missing)
}

// findPack returns what open takes for the pack of a build, alone, in an archive or from a server, or "" if there is none.
func (s *settings) findPack(buildID string) string {
	path, archived, err := pack.Find(buildID, s.allPackDirs())
	if err != nil && s.fetchPack != nil && buildID != "" {
		found, failed := s.fetchPack(buildID)
		switch {
		case failed == nil:
			return found
		case !errors.Is(failed, fs.ErrNotExist):
			s.warnOnce(failed.Error())
		}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.warnOnce(err.Error())
		}
		return ""
	}
	if archived == nil {
		return path
	}
	path += ":" + buildID
	if s.archived == nil {
		s.archived = make(map[string][]byte)
	}
	s.archived[path] = archived
	return path
}

// allPackDirs returns the directories with packs: the user's choice, then the usual ones.
func (s *settings) allPackDirs() []string { return append(slices.Clip(s.packDirs), pack.Dirs()...) }

// openPackOf opens the pack of a program without debug information. missing is the error about that.
func (s *settings) openPackOf(path string, missing error) (*dwarfloc.Image, error) {
	id, err := dwarfloc.BuildID(path)
	if err != nil {
		return nil, missing
	}
	found := s.findPack(id)
	if found == "" {
		return nil, missing
	}
	img, err := s.open(found, nil)
	if err == nil {
		err = ofPack(found, img, path, id)
	}
	return img, err
}

// ofPack returns an error unless a program's build ID is that of a pack.
func ofPack(pack string, img *dwarfloc.Image, program, id string) error {
	if img.BuildID() == id {
		return nil
	}
	return fmt.Errorf("%s: %w: the pack is of build ID %s, %s has %s", pack, instances.ErrImageMismatch, img.BuildID(), program, id)
}
