// Package pack writes packs: small files with all answers for an image, for hosts that do not have its debug
// information. See docs/packs.md.
//
//	f, err := os.Create("vmlinux.pack")
//	sum, err := pack.Write(ctx, img, pack.Options{}, f)
//
// A pack is opened as an image is: see dwarfloc.Open.
package pack

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/runs"
)

// Options say what is in a pack; the zero value is everything.
type Options struct {
	// Match selects functions; nil means all. The sites of others are not in the pack.
	Match dwarfloc.Matcher
	// NoTypes leaves out the types that the image's own BTF has, as a kernel's: those of the running kernel
	// take their place. It is of no effect for images without BTF.
	NoTypes bool
	// Progress, if not nil, is called with the number of sites that have been read, by several goroutines at once.
	Progress func(done, total int)

	seen func(i int, s *packfile.Site) // for tests; types have temporary numbers
}

// Summary says what has been written.
type Summary struct {
	Sites   int `json:"sites"`
	Inlined int `json:"inlined"`
	Values  int `json:"values"` // of parameters
	// File is the size of the file in bytes. Parts are those of what is not types, and Types is the size of .BTF.
	File  int    `json:"file"`
	Types int    `json:"types"`
	Parts []Part `json:"parts"`
}

// Part is a part of a pack.
type Part struct {
	Name string `json:"name"`
	// Bytes is its size, and Stored what it takes in the file, where pages are compressed; a page with two parts is shared out.
	Bytes  int `json:"bytes"`
	Stored int `json:"stored"`
}

// Write writes a pack of an image. The same image gives the same bytes on any machine. The error is the cause of ctx if that
// ends, or about damaged debug information.
func Write(ctx context.Context, img *dwarfloc.Image, o Options, w io.Writer) (*Summary, error) {
	file, _, sum, err := write(ctx, img, o)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(file)
	return sum, err
}

// write returns the file.
func write(ctx context.Context, img *dwarfloc.Image, o Options) (file []byte, t *typeTable, sum *Summary, err error) {
	if inside.AnsweredBy(img) == answers.BySymbols {
		return nil, nil, nil, fmt.Errorf("%s: %w: a pack has what that says; symbols are in the file itself", img.Path(), dwarfloc.ErrNoDWARF)
	}
	kernel, err := place.IsKernel(img)
	if err != nil {
		return nil, nil, nil, err
	}
	base, err := ownBTF(img)
	if err != nil {
		return nil, nil, nil, err
	}
	facts := packfile.Facts{Kernel: kernel, Checked: !kernel}
	if o.NoTypes && base != nil {
		facts.Types = packfile.Types{Base: true, BaseTypes: uint32(len(base.at)), BaseStrings: uint32(len(base.strs)), BaseSum: base.sum}
	}
	var of *table
	if base != nil {
		of = &base.table
	}
	out, err := outlineOf(img)
	if err != nil {
		return nil, nil, nil, err
	}
	t = newTypes(of)
	pw, err := readSites(ctx, img, o, t, facts)
	if err != nil {
		return nil, nil, nil, err
	}
	t.settle()
	if err := t.settleNames(ctx, img); err != nil {
		return nil, nil, nil, err
	}
	var btf []byte
	section, err := pw.Finish(t.numberOf, func() []byte {
		bw := newBTFWriter(orderOf(img), of)
		t.write(bw)
		btf = bw.section(of, facts.Types.Base)
		return btf
	})
	if err != nil {
		return nil, nil, nil, err
	}
	file = packed(out, btf, section)
	sum = &Summary{File: len(file), Types: len(btf)}
	f, err := packfile.Open(section, img.Path())
	if err != nil {
		return nil, nil, nil, err
	}
	sum.count(f)
	return file, t, sum, nil
}

func (s *Summary) count(f *packfile.File) {
	x := f.Facts()
	s.Sites, s.Inlined, s.Values = x.Sites, x.Inlined, x.Values
	for _, p := range f.Parts() {
		s.Parts = append(s.Parts, Part(p))
	}
}

// ownTable is the BTF that an image has.
type ownTable struct {
	table
	sum [sha256.Size]byte
}

// ownBTF reads the BTF of a kernel; nil if the image has none.
func ownBTF(img *dwarfloc.Image) (*ownTable, error) {
	if inside.File(img).IsRelocatable() {
		return nil, nil // of a module, it follows that of its kernel
	}
	for _, s := range inside.File(img).Sections() {
		if s.Name != btfSection {
			continue
		}
		d, err := inside.File(img).Bytes(s.Addr, s.Size)
		if err != nil {
			return nil, err
		}
		t, err := readTable(d, orderOf(img))
		if err != nil {
			return nil, err
		}
		return &ownTable{*t, sha256.Sum256(d)}, nil
	}
	return nil, nil
}

func orderOf(img *dwarfloc.Image) binary.ByteOrder {
	if inside.File(img).BigEndian() {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// readSites returns a writer with all sites.
func readSites(ctx context.Context, img *dwarfloc.Image, o Options, t *typeTable, facts packfile.Facts) (*packfile.Writer, error) {
	r := &reader{img: img, types: t}
	var err error
	if facts.Kernel {
		if r.causes, err = attachable.New(img); err != nil {
			return nil, err
		}
	}
	if r.before, err = known(img); err != nil {
		return nil, err
	}
	list, err := inside.List(img, ctx, o.Match, nil)
	if err != nil {
		return nil, err
	}
	total := list.Len()
	w := packfile.NewWriter(facts, total)
	done := make([]int, runtime.GOMAXPROCS(0))
	sites := make([]packfile.Site, runtime.GOMAXPROCS(0))
	return w, inside.EachOf(list, ctx, 0, total, true, func(worker, i int, s *dwarfloc.Site, ways *runs.Ways) error {
		x := &sites[worker]
		if err := r.site(s, ways, x); err != nil {
			return err
		}
		if o.seen != nil {
			o.seen(i, x)
		}
		if err := w.Add(s.DIE, x); err != nil {
			return err
		}
		if done[worker]++; o.Progress != nil && done[worker]%1000 == 0 {
			o.Progress(done[worker]*len(done), total)
		}
		return nil
	})
}

// open opens the section of a pack.
func open(data []byte, path string) (*packfile.File, error) {
	section, err := packfile.Find(data, path)
	if err != nil {
		return nil, err
	}
	return packfile.Open(section, path)
}

// Check checks all of a pack: data is the file's contents, and path what errors name.
func Check(data []byte, path string) (*Summary, error) {
	f, err := open(data, path)
	if err != nil {
		return nil, err
	}
	if err := f.CheckFile(data); err != nil {
		return nil, err
	}
	btf, err := packfile.BTF(data, path)
	if err != nil {
		return nil, err
	}
	sum := &Summary{File: len(data), Types: len(btf)}
	sum.count(f)
	return sum, nil
}
