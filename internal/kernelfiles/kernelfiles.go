package dwarfloc

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/bpfprologue/bpfprologue/internal/mapping"
)

// moduleSuffixes end the names of modules' files, the preferred first: as they were
// built, as Fedora and SUSE name what holds only debug information, and compressed.
var moduleSuffixes = []string{".ko", ".ko.debug", ".ko.zst", ".ko.xz", ".ko.gz"}

// ModuleDirs are the directories below which modules of a kernel release usually
// are, those with debug information first. kernel is the path of the release's
// vmlinux, or "": modules may be beside it.
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
		filepath.Join(debugRoot, "lib", "modules", release),
		filepath.Join(debugRoot, "usr", "lib", "modules", release),
		filepath.Join("/lib", "modules", release),
	} {
		if !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// FindModule returns the path of a kernel module's file: a path as it is, or the
// file of the module with a name, in the first of the directories that has one
// somewhere below it. The kernel makes no difference between - and _ in the name of
// a module. The error lists the places, and names that look alike.
func FindModule(name string, dirs []string) (string, error) {
	if strings.ContainsRune(name, '/') || isModule(name) != "" {
		return name, nil
	}
	want := strings.ReplaceAll(name, "-", "_")
	var near []string
	nearest := len(want)/3 + 1
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
			if rank := slices.Index(moduleSuffixes, suffix); module == want && rank < bestRank {
				best, bestRank = path, rank
			} else if n := levenshtein.Distance(module, want, nil); module != want && n <= nearest {
				if n < nearest {
					near, nearest = nil, n
				}
				if !slices.Contains(near, module) {
					near = append(near, module)
				}
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
	hint := ""
	if len(near) > 0 {
		hint = "; did you mean " + strings.Join(near[:min(len(near), 3)], ", ") + "?"
	}
	return "", fmt.Errorf("no file of module %s found%s; looked below:\n  %s\n%s", name, hint, strings.Join(dirs, "\n  "),
		"install the kernel's debug package, or name the module's file with module=PATH or -k PATH")
}

// isModule returns the suffix that makes a file name a module's, or "".
func isModule(file string) string {
	for _, s := range moduleSuffixes {
		if strings.HasSuffix(file, s) {
			return s
		}
	}
	return ""
}

// KernelRelease returns the release of a kernel image, as uname -r prints it when
// that kernel runs: it stands in the image's read-only data.
func KernelRelease(path string) (string, error) {
	m, err := mapping.Open(path)
	if err != nil {
		return "", err
	}
	defer m.Close()
	release := ""
	err = guard(func() error {
		file, err := elf.NewFile(bytes.NewReader(m.Data))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		src := source{path, file, m.Data}
		sec := file.Section(".rodata")
		if sec == nil {
			return nil
		}
		d, err := src.sectionData(sec)
		if err != nil {
			return err
		}
		// linux_banner: "Linux version 6.1.0-13-amd64 (...". Other strings begin alike
		// ("Linux version %s").
		const banner = "Linux version "
		for {
			i := bytes.Index(d, []byte(banner))
			if i < 0 {
				return nil
			}
			d = d[i+len(banner):]
			if n := bytes.IndexByte(d[:min(len(d), 65)], ' '); n > 0 && d[0] >= '0' && d[0] <= '9' {
				release = string(d[:n])
				return nil
			}
		}
	})
	if err == nil && release == "" {
		err = fmt.Errorf("%s: it does not say which kernel release it is: no %q in .rodata", path, "Linux version")
	}
	return release, err
}
