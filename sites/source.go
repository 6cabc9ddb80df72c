package sites

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
)

// Sources are the directories to search for source files, in order. If there are none,
// files are where their compiler found them.
type Sources []SourceDir

// A SourceDir is one directory with sources. The file Dir/fs/read_write.c is found for
// the file fs/read_write.c of the debug information, and for any longer path with that end.
type SourceDir struct {
	Dir string
	// Prefix, if not "", is the directory of the debug information that Dir stands for: only
	// files below it are searched for in Dir.
	Prefix string
}

// maxSourceSize bounds a source file: the largest of Linux has 14 MB.
const maxSourceSize = 64 << 20

// lines returns the lines of a file that the debug information names, without their ends.
// The first one has index 0.
func (s Sources) lines(img *dwarfloc.Image, file string) ([]string, error) {
	var looked []string
	for _, p := range s.candidates(img, file) {
		st, err := os.Stat(p)
		if err == nil && st.Mode().IsRegular() {
			if st.Size() > maxSourceSize {
				return nil, fmt.Errorf("%s: too large for a source file", p)
			}
			d, err := os.ReadFile(p)
			if err != nil {
				return nil, err
			}
			return strings.Split(strings.ReplaceAll(string(d), "\r\n", "\n"), "\n"), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		looked = append(looked, p)
	}
	return nil, &NoSourceError{File: file, Looked: looked}
}

// NoSourceError is the error for a source file that was not found.
type NoSourceError struct {
	File   string   // as the debug information names it
	Looked []string // paths that were tried
}

func (e *NoSourceError) Error() string {
	if len(e.Looked) == 0 {
		return fmt.Sprintf("source file %s not found", e.File) // it is below no SourceDir.Prefix
	}
	msg := fmt.Sprintf("source file %s not found (tried %s", e.File, strings.Join(e.Looked[:min(len(e.Looked), 3)], ", "))
	if len(e.Looked) > 3 {
		msg += ", ..."
	}
	return msg + ")"
}

// candidates returns the paths where a file may be.
func (s Sources) candidates(img *dwarfloc.Image, file string) []string {
	full := file
	if !path.IsAbs(file) {
		full = path.Join(img.CompilationDir(file), file)
	}
	if len(s) == 0 {
		return []string{full}
	}
	var out []string
	for _, d := range s {
		if d.Prefix != "" {
			for _, f := range []string{full, path.Clean(file)} {
				if rest, ok := strings.CutPrefix(f, strings.TrimSuffix(d.Prefix, "/")+"/"); ok {
					out = append(out, filepath.Join(d.Dir, filepath.FromSlash(rest)))
				}
			}
			continue
		}
		// A relative path as it is; for an absolute one, shorter and shorter ends.
		rest := strings.TrimPrefix(path.Clean("/"+file), "/")
		for {
			out = append(out, filepath.Join(d.Dir, filepath.FromSlash(rest)))
			_, tail, ok := strings.Cut(rest, "/")
			if !ok {
				break
			}
			rest = tail
		}
	}
	return out
}

// texts matches a lazy pattern with source files.
type texts struct {
	pattern *glob.Lazy
	sources Sources
	files   map[string][]bool // by line, from 1: whether it matches
}

// texts returns nil for lines that are given by number.
func (l *Lines) texts() (*texts, error) {
	if l.Lazy == "" {
		return nil, nil
	}
	p, err := glob.CompileLazy(l.Lazy)
	if err != nil {
		return nil, err
	}
	return &texts{pattern: p, sources: l.Sources, files: make(map[string][]bool)}, nil
}

// read matches the lines of a file, unless it did before.
func (t *texts) read(img *dwarfloc.Image, file string) error {
	if _, ok := t.files[file]; ok {
		return nil
	}
	lines, err := t.sources.lines(img, file)
	if err != nil {
		return err
	}
	match := make([]bool, len(lines)+1)
	for i, l := range lines {
		match[i+1] = t.pattern.Match(l)
	}
	t.files[file] = match
	return nil
}

func (t *texts) match(file string, line int) bool {
	m := t.files[file]
	return line >= 0 && line < len(m) && m[line]
}
