package dwarfloc_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
)

// kernelBTF opens the BTF of a kernel alone, with symbols as its /proc/kallsyms would have them.
func kernelBTF(t *testing.T, img *dwarfloc.Image) *dwarfloc.Image {
	t.Helper()
	f, err := elf.Open(img.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Section(".BTF") == nil {
		t.Skip(img.Path(), "has no BTF")
	}
	section, err := f.Section(".BTF").Data()
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, s := range symbols {
		if int(s.Section) >= len(f.Sections) && s.Section != elf.SHN_ABS || s.Name == "" || elf.ST_TYPE(s.Info) == elf.STT_FILE || elf.ST_TYPE(s.Info) == elf.STT_SECTION {
			continue
		}
		kind := "d"
		if s.Section != elf.SHN_ABS && f.Sections[s.Section].Flags&elf.SHF_EXECINSTR != 0 {
			kind = "t"
		}
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			kind = strings.ToUpper(kind)
		}
		fmt.Fprintf(&text, "%016x %s %s\n", s.Value, kind, s.Name)
	}
	out, err := dwarfloc.FromBTF(dwarfloc.BTFOptions{Path: "btf", BTF: section, Arch: img.Arch(), Symbols: &text, BuildID: img.BuildID()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBTFAgrees compares what the calling convention says for the signatures in BTF with what DWARF says, for all
// entries of the kernel.
func TestBTFAgrees(t *testing.T) {
	raced.OneGoroutine(t)
	img, err := dwarfloc.Open(testenv.Vmlinux(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	c := compareBTF(t, img)
	t.Log(c)
	if known := c.equal + c.alone + c.missing + c.neither; c.equal < 90_000 || c.missing > known/100 {
		t.Errorf("%d parameters of %d have the same location in DWARF, at least 90,000 and 99 %% wanted", c.equal, known)
	}
	for _, text := range c.different {
		t.Error(text)
	}
	// pahole 1.24 writes one signature for all functions of a name. Where one of them is inlined everywhere, nothing
	// shows that the symbol is another's.
	if len(c.others) > 30 {
		t.Errorf("%d functions have the signature of another one: %v", len(c.others), c.others)
	}
}

// btfComparison counts parameters.
type btfComparison struct {
	entries, equal, alone, missing, neither, unknown int

	different []string
	others    []string // functions with the signature of another one of their name
}

func (c *btfComparison) String() string {
	return fmt.Sprintf("%d entries: %d parameters at the same place, %d only by BTF, %d only by DWARF, %d by neither, of %d nobody knows whose signature it is; %d functions have the signature of another one: %v",
		c.entries, c.equal, c.alone, c.missing, c.neither, c.unknown, len(c.others), c.others)
}

// onePiece prints a location. A structure in one register has one piece.
func onePiece(img *dwarfloc.Image, l *loc.Location) string {
	if len(l.Pieces) == 1 {
		l = &l.Pieces[0].Loc
	}
	return l.Text(img.Arch())
}

func compareBTF(t *testing.T, img *dwarfloc.Image) *btfComparison {
	other := kernelBTF(t, img)
	type key struct {
		name string
		addr uint64
	}
	of := make(map[key]*dwarfloc.Site)
	all, err := img.Sites(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		// Where room is left for ftrace, the function in DWARF begins after its symbol.
		if s.Kind == dwarfloc.SiteEntry && s.Offset < 64 {
			of[key{s.Function, s.Addr - s.Offset}] = s
		}
	}
	sites, err := other.Sites(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &btfComparison{}
	for _, s := range sites {
		d := of[key{s.Function, s.Addr}]
		if d == nil || d.AfterPrologue {
			continue // without debug information, as what macros of tracepoints make; or DWARF has them elsewhere
		}
		c.entries++
		have, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		want, err := d.Params()
		if err != nil {
			t.Fatal(err)
		}
		if len(have) > 0 && have[0].Reason.Code == reasons.NotDescribed {
			c.unknown += len(have)
			continue
		}
		same := len(have) == len(want)
		for i := range have {
			if !same {
				break
			}
			v, w := have[i], want[i]
			// Arguments of system calls that macros do not use have one name in BTF, and another in DWARF.
			same = (v.Name == w.Name || v.Name == "__unused") && v.Type.String() == w.Type.String()
		}
		if !same {
			c.others = append(c.others, s.Function)
			continue
		}
		for i, v := range have {
			w := want[i]
			a, b := onePiece(img, &v.Loc), onePiece(img, &w.Loc)
			switch {
			case v.Located() && w.Located() && a == b:
				c.equal++
			case v.Located() && w.Located():
				c.different = append(c.different, fmt.Sprintf("%s %s: %s, DWARF %s (%v)", s.Symbol, v.Name, a, b, w.Loc.Rule))
			case v.Located():
				c.alone++
			case w.Located():
				c.missing++
			default:
				c.neither++
			}
		}
	}
	return c
}
