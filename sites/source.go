package sites

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// Sources are the directories to search for source files, in order. An image names any file that its maker
// likes, so only regular files below these directories are read, wherever links lead, and of at most 64 MB.
//
// If there are no directories, a file is searched for below the directory that it was compiled in, if that
// is this user's own and nobody else can write to it, and if its name ends as those of source files do. To
// root every directory of the system is its own: for root it must be below the working directory, the home
// directory or that of temporary files.
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

// place is where a source file may be.
type place struct {
	dir, file string // file is relative to dir
	named     bool   // the user named dir
}

func (p *place) path() string { return filepath.Join(p.dir, p.file) }

// lines returns the lines of a file that the debug information names, without their ends.
// The first one has index 0.
func (s Sources) lines(img *dwarfloc.Image, file string) ([]string, error) {
	none := &NoSourceError{File: file}
	for _, p := range s.places(img, file) {
		d, err := p.read()
		var no syscall.Errno
		switch {
		case err == nil:
			return strings.Split(strings.ReplaceAll(string(d), "\r\n", "\n"), "\n"), nil
		case errors.Is(err, errForeign):
			none.Foreign = p.dir
			continue
		case errors.Is(err, errTooLarge), errors.As(err, &no) && !slices.Contains(notThere, no):
			return nil, err
		}
		none.Looked = append(none.Looked, p.path())
	}
	return nil, none
}

var (
	errForeign   = errors.New("not this user's own")
	errTooLarge  = errors.New("too large for a source file")
	errIrregular = errors.New("not a regular file")
)

// notThere are errors that say that a file is not at a place, or not for this user.
var notThere = []syscall.Errno{unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENAMETOOLONG, unix.EINVAL}

// read returns the contents of the file. An os.Root opens nothing outside of itself, whatever links there
// are.
func (p *place) read() ([]byte, error) {
	if p.file == "" {
		return nil, errForeign
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if !p.named {
		if st, err := root.Stat("."); err != nil {
			return nil, err
		} else if !ownDir(p.dir, st) || !isSourceName(p.file) {
			return nil, errForeign
		}
	}
	// To open a device may do something, and to open a pipe may wait.
	if st, err := root.Stat(p.file); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, errIrregular
	}
	f, err := root.OpenFile(p.file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, errIrregular
	case st.Size() > maxSourceSize:
		return nil, fmt.Errorf("%s: %w", p.path(), errTooLarge)
	}
	// What has no size, as the files of /proc, is made as it is read, and could go on for ever.
	return io.ReadAll(io.LimitReader(f, st.Size()))
}

// ownDir reports whether a directory that an image names, and the user does not, is this user's own.
func ownDir(dir string, st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || sys.Mode&0o002 != 0 || sys.Mode&0o020 != 0 && sys.Gid != sys.Uid {
		return false
	}
	if euid := os.Geteuid(); euid != 0 {
		return int(sys.Uid) == euid
	}
	if sys.Uid != 0 && strconv.Itoa(int(sys.Uid)) != os.Getenv("SUDO_UID") {
		return false
	}
	here, _ := os.Getwd()
	return slices.ContainsFunc([]string{here, os.Getenv("HOME"), os.TempDir()}, func(own string) bool { return isBelow(own, dir) })
}

// isBelow reports whether a directory is below another one, wherever links lead. Nothing counts as below
// the root directory.
func isBelow(above, dir string) bool {
	if above == "" {
		return false
	}
	top, err := filepath.EvalSymlinks(above)
	if err != nil || top == "/" {
		return false
	}
	below, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(top, below)
	return err == nil && filepath.IsLocal(rel)
}

// sourceNames are how names of source files end: of C, C++, Rust, Go, assembler, and what is made of other
// languages and keeps their names.
var sourceNames = strings.Fields(`.c .h .cc .cp .cpp .cxx .c++ .C .hh .hp .hpp .hxx .h++ .H .tcc .ipp .inl .inc .def .tbl
	.m .mm .rs .go .s .S .sx .asm .y .l .yy .ll .re .d .f .for .f90 .F .F90 .ad .adb .ads .zig .swift .pas .pp .nim .v .java .kt .ml .hs`)

func isSourceName(file string) bool { return slices.Contains(sourceNames, filepath.Ext(file)) }

// NoSourceError is the error for a source file that was not found.
type NoSourceError struct {
	File    string   // as the debug information names it
	Looked  []string // paths that were tried
	Foreign string   // directory that was not searched: see Sources
}

func (e *NoSourceError) Error() string {
	msg := fmt.Sprintf("source file %s not found", e.File) // if nothing follows, it is below no SourceDir.Prefix
	switch {
	case len(e.Looked) > 3:
		msg += fmt.Sprintf(" (tried %s, ...)", strings.Join(e.Looked[:3], ", "))
	case len(e.Looked) > 0:
		msg += fmt.Sprintf(" (tried %s)", strings.Join(e.Looked, ", "))
	case e.Foreign != "":
		msg += fmt.Sprintf(" (not searched for in %s, which the image names and the user does not)", e.Foreign)
	}
	return msg
}

// places returns where a file may be.
func (s Sources) places(img *dwarfloc.Image, file string) []place {
	compiled := inside.CompilationDir(img, file)
	full := path.Clean(file)
	if !path.IsAbs(file) {
		full = path.Join(compiled, file)
	}
	if len(s) == 0 {
		if rest, ok := below(compiled, full); ok && path.IsAbs(compiled) {
			return []place{{compiled, rest, false}}
		}
		return []place{{dir: compiled}} // without a file: it is not below the directory
	}
	var out []place
	for _, d := range s {
		if d.Prefix != "" {
			for _, f := range []string{full, path.Clean(file)} {
				if rest, ok := below(d.Prefix, f); ok {
					out = append(out, place{d.Dir, filepath.FromSlash(rest), true})
				}
			}
			continue
		}
		// A relative path as it is; for an absolute one, shorter and shorter ends.
		rest := strings.TrimPrefix(path.Clean("/"+file), "/")
		for {
			out = append(out, place{d.Dir, filepath.FromSlash(rest), true})
			_, tail, ok := strings.Cut(rest, "/")
			if !ok {
				break
			}
			rest = tail
		}
	}
	return out
}

// below returns the rest of a path below a directory.
func below(dir, file string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(file, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok && rest != ""
}

// ifFound returns the lines of a file, and false if it is not found.
func (s Sources) ifFound(img *dwarfloc.Image, file string) (text []string, found bool, err error) {
	text, err = s.lines(img, file)
	var none *NoSourceError
	if errors.As(err, &none) {
		return nil, false, nil
	}
	return text, err == nil, err
}

// texts matches a lazy pattern with source files.
type texts struct {
	pattern lazy
	sources Sources
	files   map[string][]bool // by line, from 1: whether it matches
}

// texts returns nil for lines that are given by number.
func (l *Lines) texts() (*texts, error) {
	if l.Lazy == "" {
		return nil, nil
	}
	p, err := compileLazy(l.Lazy)
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
		match[i+1] = t.pattern.match(l)
	}
	t.files[file] = match
	return nil
}

func (t *texts) match(file string, line int) bool {
	m := t.files[file]
	return line >= 0 && line < len(m) && m[line]
}
