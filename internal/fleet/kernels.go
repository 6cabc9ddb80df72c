package fleet

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/pack"
)

// Kernel is a column: a kernel, or a module of one.
type Kernel struct {
	Name    string `json:"name"` // the release, or else the file's name
	Path    string `json:"image"`
	BuildID string `json:"build_id"`
	Arch    string `json:"arch"`
	Module  string `json:"module,omitempty"`

	img   *dwarfloc.Image
	table *attachable.Table
}

// Source is where a kernel is: a file, or a pack in an archive.
type Source struct {
	path     string
	archived string // build ID in the archive, or ""
	among    bool   // others, as in an archive, which may be programs
}

// Sources lists the kernels that paths name: packs, archives of them, images with debug information, and directories, in which those are
// found by their names: pack, *.pack, *.packs, vmlinux and vmlinux-*. Of an archive and a directory, programs are left out.
func Sources(paths []string) (out []Source, err error) {
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		files := []string{path}
		if st.IsDir() {
			if files, err = filesBelow(path); err != nil {
				return nil, err
			}
			if files == nil {
				return nil, fmt.Errorf("%s: no kernel in this directory: their names are pack, *.pack, *.packs, vmlinux and vmlinux-*", path)
			}
		}
		for _, f := range files {
			ids, err := archivedIn(f)
			if err != nil {
				return nil, err
			}
			if ids == nil {
				out = append(out, Source{path: f, among: st.IsDir()})
			}
			for _, id := range ids {
				out = append(out, Source{f, id, true})
			}
		}
	}
	return out, nil
}

func filesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch name := d.Name(); {
		case name == treeName, name == "vmlinux", strings.HasPrefix(name, "vmlinux-"), strings.HasSuffix(name, pack.Extension), strings.HasSuffix(name, ".packs"):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// archivedIn returns the build IDs of an archive's packs; none of another file.
func archivedIn(path string) (ids []string, err error) {
	err = withArchive(path, func(a *packfile.Archive) error {
		if ids = a.BuildIDs(); len(ids) == 0 {
			return fmt.Errorf("%s: the archive is empty", path)
		}
		return nil
	})
	return ids, err
}

// withArchive calls f with an archive, if the file is one. f must not keep its bytes.
func withArchive(path string, f func(*packfile.Archive) error) error {
	m, err := mapping.Open(path)
	if err != nil {
		return err
	}
	err = mapping.Guard(func() error {
		if !packfile.IsArchive(m.Data) {
			return nil
		}
		a, err := packfile.OpenArchive(m.Data, path)
		if err != nil {
			return err
		}
		return f(a)
	})
	return errors.Join(err, m.Close())
}

// open opens a kernel. It returns nil for a program among others.
func (s *Source) open(o *dwarfloc.Options) (_ *Kernel, err error) {
	k := &Kernel{Path: s.path}
	if s.archived == "" {
		k.img, err = dwarfloc.Open(s.path, o)
	} else {
		k.Path += ":" + s.archived
		var data []byte
		err = withArchive(s.path, func(a *packfile.Archive) error {
			data = bytes.Clone(a.Find(s.archived)) // the archive may be replaced meanwhile
			return nil
		})
		if err == nil {
			k.img, err = dwarfloc.FromBytes(k.Path, data, o)
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.img.Close())
		}
	}()
	if id := s.buildID(); id != "" && k.img.BuildID() != id {
		return nil, fmt.Errorf("%s: the pack is of another build: %s", k.Path, cmp.Or(k.img.BuildID(), "it has no build ID"))
	}
	if lost := k.img.Missing(); lost != nil && o.Warn != nil {
		o.Warn(lost) // what is lost there is not lost on the kernel
	}
	switch kernel, err := place.IsKernel(k.img); {
	case err != nil:
		return nil, err
	case !kernel && s.among:
		return nil, k.img.Close()
	case !kernel:
		return nil, fmt.Errorf("%s: it is no kernel's, but a program's", k.Path)
	}
	k.BuildID, k.Arch = k.img.BuildID(), k.img.Arch().Name
	if inside.File(k.img).IsRelocatable() {
		k.Module = place.ModuleName(k.img)
	}
	k.Name = cmp.Or(release(k.img), nameOfFile(s.path))
	if s.archived != "" && k.Name == nameOfFile(s.path) {
		k.Name = s.archived
	}
	if k.table, err = attachable.New(k.img); err != nil {
		return nil, err
	}
	return k, nil
}

// buildID returns the build ID that a pack's place says, or "": in an archive, in a tree (see WriteInTree) and in a directory that pack.Find
// looks into.
func (s *Source) buildID() string {
	if s.archived != "" {
		return s.archived
	}
	name, isPack := strings.CutSuffix(filepath.Base(s.path), pack.Extension)
	if filepath.Base(s.path) == treeName {
		name, isPack = filepath.Base(filepath.Dir(s.path)), true
	}
	// Of 16 bytes and more: shorter numbers may be something else.
	if b, err := hex.DecodeString(name); !isPack || err != nil || len(b) < 16 {
		return ""
	}
	return name
}

// isOf reports whether the definitions of a module, or of the kernel itself if the name is "", are about this image.
func (k *Kernel) isOf(module string) bool {
	if strings.Contains(module, "/") {
		return filepath.Clean(module) == filepath.Clean(k.Path)
	}
	return strings.ReplaceAll(module, "-", "_") == k.Module
}

// release returns what a kernel or module says is its release, or "".
func release(img *dwarfloc.Image) (name string) {
	f := inside.File(img)
	order := binary.ByteOrder(binary.LittleEndian)
	if f.BigEndian() {
		order = binary.BigEndian
	}
	_ = f.Guard(func() error {
		// Of kernels the notes have it where the distribution has set CONFIG_BUILD_SALT, as Debian and Fedora do.
		d, err := f.SectionContents(".notes")
		if err == nil {
			name = elfnote.BuildSalt(d, order)
		}
		if d, err = f.SectionContents(".modinfo"); err != nil {
			return err
		}
		for text := range bytes.SplitSeq(d, []byte{0}) {
			if v, ok := bytes.CutPrefix(text, []byte("vermagic=")); ok {
				v, _, _ = bytes.Cut(v, []byte(" "))
				name = string(v)
			}
		}
		return nil
	})
	if len(name) > maxName {
		return ""
	}
	return name
}

// maxName bounds names of kernels: uname has 65 bytes for a release.
const maxName = 65

// nameOfFile returns the release in a file's name: "6.1.0-56-amd64" of vmlinux-6.1.0-56-amd64 and of 6.1.0-56-amd64.pack.
func nameOfFile(path string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "vmlinux-"), pack.Extension)
	if name == treeName || name == "vmlinux" {
		return filepath.Base(filepath.Dir(path)) // a build ID, or a release
	}
	return name
}

// compareKernels sorts by release, of which numbers are compared as numbers, and then by path.
func compareKernels(a, b *Kernel) int {
	return cmp.Or(compareReleases(a.Name, b.Name), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Arch, b.Arch), cmp.Compare(a.Path, b.Path))
}

func compareReleases(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			break
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(a, b)
}

func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// nameApart makes the names of kernels distinct: by module, and where that does not do by path.
func nameApart(columns []column) {
	count := make(map[string]int)
	for i := range columns {
		k := &columns[i].kernel
		if k.Module != "" {
			k.Name += " " + k.Module
		}
		count[k.Name]++
	}
	for i := range columns {
		if k := &columns[i].kernel; count[k.Name] > 1 {
			k.Name += " " + k.Path
		}
	}
}
