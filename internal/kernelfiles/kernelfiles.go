// Package kernelfiles finds kernel images and modules with debug information where
// distributions and kernel builds put them.
package kernelfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/image"
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

// FindRunningKernel returns the vmlinux with debug information of a kernel release: the
// first of the usual places that has one. The error is a *NotFoundError.
func FindRunningKernel(release string) (string, error) {
	paths := []string{
		"/usr/lib/debug/boot/vmlinux-" + release,
		"/usr/lib/debug/lib/modules/" + release + "/vmlinux",
		"/lib/modules/" + release + "/build/vmlinux",
		"/lib/modules/" + release + "/vmlinux",
		"/boot/vmlinux-" + release,
	}
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", &NotFoundError{What: "vmlinux of the running kernel " + release, Looked: paths}
}

// moduleSuffixes are the suffixes of modules' file names, in order of preference: as built,
// as Fedora and SUSE name files with debug information only, and compressed.
var moduleSuffixes = []string{".ko", ".ko.debug", ".ko.zst", ".ko.xz", ".ko.gz"}

// ModuleDirs returns the directories that usually contain a kernel release's modules, those
// with debug information first. kernel is the path of the release's vmlinux, or "": modules
// may be next to it.
func ModuleDirs(release, kernel string) []string {
	var dirs []string
	if kernel != "" {
		if dir := filepath.Dir(kernel); filepath.Base(kernel) == "vmlinux" {
			dirs = append(dirs, dir) // a build tree, or an installed one
		} else {
			dirs = append(dirs, filepath.Join(dir, "..", "lib", "modules", release))
		}
	}
	for _, d := range []string{
		filepath.Join("/usr/lib/debug", "lib", "modules", release),
		filepath.Join("/usr/lib/debug", "usr", "lib", "modules", release),
		filepath.Join("/lib", "modules", release),
	} {
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
