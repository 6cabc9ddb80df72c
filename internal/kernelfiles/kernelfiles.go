// Package kernelfiles finds kernel images and modules with debug information where
// distributions and kernel builds put them.
package kernelfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

// NotFoundError is the error for a kernel or a module that is in none of the usual places.
type NotFoundError struct {
	What    string   // "vmlinux of the running kernel 6.1.0-13-amd64", "file of module ext4"
	Nearest []string // modules with similar names
	Looked  []string // paths
	Below   bool     // Looked are directories, which were searched recursively
}

func (e *NotFoundError) Error() string {
	hint := ""
	if len(e.Nearest) > 0 {
		hint = "; did you mean " + strings.Join(e.Nearest, ", ") + "?"
	}
	where := "at"
	if e.Below {
		where = "below"
	}
	return fmt.Sprintf("no %s found%s; looked %s %s", e.What, hint, where, strings.Join(e.Looked, ", "))
}

// kernelPaths are the usual places of a kernel's vmlinux, with %s for its release: those below a directory
// of debug information, then others. Of Debian, Ubuntu and SUSE; of Fedora, Red Hat and newer Debian; of
// Arch and Fedora with /lib in /usr. Then what a build leaves, and the vmlinux that some install without
// debug information, or compressed, as SUSE does: that is found by its build ID.
var kernelPaths = struct{ debug, own []string }{
	debug: []string{"boot/vmlinux-%s", "lib/modules/%s/vmlinux", "usr/lib/modules/%s/vmlinux"},
	own: []string{
		"/lib/modules/%s/build/vmlinux", "/lib/modules/%s/vmlinux", "/boot/vmlinux-%s",
		"/lib/modules/%s/vmlinux.xz", "/lib/modules/%s/vmlinux.zst", "/lib/modules/%s/vmlinux.gz",
		"/boot/vmlinux-%s.xz", "/boot/vmlinux-%s.zst", "/boot/vmlinux-%s.gz",
	},
}

// FindRunningKernel returns the vmlinux with debug information of a kernel release: the
// first of the usual places that has one. debugDirs are directories like /usr/lib/debug. The error
// is a *NotFoundError.
func FindRunningKernel(release string, debugDirs []string) (string, error) {
	return findKernel(release, debugDirs, "/")
}

// findKernel is FindRunningKernel, with all but debugDirs below a root.
func findKernel(release string, debugDirs []string, root string) (string, error) {
	var paths []string
	for _, dir := range debugDirs {
		for _, p := range kernelPaths.debug {
			paths = append(paths, filepath.Join(dir, fmt.Sprintf(p, release)))
		}
	}
	for _, p := range kernelPaths.own {
		paths = append(paths, filepath.Join(root, fmt.Sprintf(p, release)))
	}
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", &NotFoundError{What: "vmlinux of the running kernel " + release, Looked: paths}
}

// RunningRelease returns what uname -r prints.
func RunningRelease() (string, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(uts.Release[:]), nil
}

// RunningBuildID returns the build ID of the running kernel, or of one of its modules if module is not "".
// It is "" if the kernel does not say.
func RunningBuildID(module string) string {
	path := "/sys/kernel/notes"
	if module != "" {
		path = filepath.Join("/sys/module", strings.ReplaceAll(module, "-", "_"), "notes/.note.gnu.build-id")
	}
	notes, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return elfnote.BuildID(notes, binary.NativeEndian)
}

// moduleSuffixes are the suffixes of modules' file names, in order of preference: as built,
// as Fedora and SUSE name files with debug information only, and compressed.
var moduleSuffixes = []string{".ko", ".ko.debug", ".ko.zst", ".ko.xz", ".ko.gz"}

// ModuleDirs returns the directories that usually contain a kernel release's modules, those
// with debug information first. kernel is the path of the release's vmlinux, or "": modules
// may be next to it. debugDirs are directories like /usr/lib/debug.
func ModuleDirs(release, kernel string, debugDirs []string) []string {
	var dirs []string
	if kernel != "" {
		if dir := filepath.Dir(kernel); filepath.Base(kernel) == "vmlinux" {
			dirs = append(dirs, dir) // a build tree, or an installed one
		} else {
			dirs = append(dirs, filepath.Join(dir, "..", "lib", "modules", release))
		}
	}
	var usual []string
	for _, d := range debugDirs {
		usual = append(usual, filepath.Join(d, "lib", "modules", release), filepath.Join(d, "usr", "lib", "modules", release))
	}
	for _, d := range append(usual, filepath.Join("/lib", "modules", release)) {
		if !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// FindModule returns the path of a kernel module's file. A path is returned unchanged; a
// name is searched for in the directories and below them, in order. As in the kernel, - and
// _ are the same in a module's name. The error is a *NotFoundError.
func FindModule(name string, dirs []string) (string, error) {
	if strings.ContainsRune(name, '/') || isModule(name) != "" {
		return name, nil
	}
	want := strings.ReplaceAll(name, "-", "_")
	seen := make(map[string]bool)
	for _, dir := range dirs {
		best, bestRank := "", len(moduleSuffixes)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
					return nil
				}
				return err
			}
			suffix := isModule(d.Name())
			if d.IsDir() || suffix == "" {
				return nil
			}
			module := strings.ReplaceAll(strings.TrimSuffix(d.Name(), suffix), "-", "_")
			seen[module] = true
			if rank := slices.Index(moduleSuffixes, suffix); module == want && rank < bestRank {
				best, bestRank = path, rank
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		if best != "" {
			return best, nil
		}
	}
	return "", &NotFoundError{What: "file of module " + name, Nearest: suggest.Nearest(want, maps.Keys(seen), 3), Looked: dirs, Below: true}
}

// isModule returns the suffix by which a file name is a module's, or "".
func isModule(file string) string {
	for _, s := range moduleSuffixes {
		if strings.HasSuffix(file, s) {
			return s
		}
	}
	return ""
}

// KernelRelease returns the release of a kernel image, as uname -r prints it when that
// kernel runs. It is read from the image's read-only data.
func KernelRelease(path string) (string, error) {
	f, err := image.Open(path, nil)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// linux_banner: "Linux version 6.1.0-13-amd64 (...". Other strings begin alike
	// ("Linux version %s").
	const banner = "Linux version "
	for _, s := range f.Sections() {
		if s.Name != ".rodata" {
			continue
		}
		d, err := f.Bytes(s.Addr, s.Size)
		if err != nil {
			return "", err
		}
		for {
			i := bytes.Index(d, []byte(banner))
			if i < 0 {
				break
			}
			d = d[i+len(banner):]
			if n := bytes.IndexByte(d[:min(len(d), 65)], ' '); n > 0 && d[0] >= '0' && d[0] <= '9' {
				return string(d[:n]), nil
			}
		}
	}
	return "", fmt.Errorf("%s: it does not say which kernel release it is: no %q in .rodata", path, "Linux version")
}
