package btfinline

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Agreement counts what two descriptions of one image say of its inlined instances: a section .BTF.inline, and DWARF.
type Agreement struct {
	Both    int `json:"both"`       // instances of the same function at the same address
	OnlyBTF int `json:"only_btf"`   // instances
	Only    int `json:"only_dwarf"` // instances
	// The rest counts parameters of the instances in both.
	Same      int      `json:"same"`
	Other     int      `json:"other"`
	ByBTF     int      `json:"by_btf"`   // located by BTF alone
	ByDWARF   int      `json:"by_dwarf"` // located by DWARF alone
	Neither   int      `json:"neither"`
	Different []string `json:"different"` // some of Other, in words
}

// maxDifferent is how many differences are reported in words.
const maxDifferent = 20

// AgreeInline compares the inlined instances of two images of one build. Without views BTF cannot tell instances at one
// address apart, so they are compared in the order in which each image has them.
func AgreeInline(ctx context.Context, btf, dwarf *dwarfloc.Image) (*Agreement, error) {
	type key struct {
		function string
		addr     uint64
	}
	all, err := btf.Sites(ctx, nil)
	if err != nil {
		return nil, err
	}
	left := make(map[key][]*dwarfloc.Site)
	a := &Agreement{}
	for _, s := range all {
		if s.Inlined() {
			k := key{s.Function, s.Addr}
			left[k] = append(left[k], s)
			a.OnlyBTF++
		}
	}
	l, err := inside.List(dwarf, ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	sites, err := l.Sites(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		if !s.Inlined() {
			continue
		}
		k := key{s.Function, s.Addr}
		if len(left[k]) == 0 {
			a.Only++
			continue
		}
		a.Both++
		a.OnlyBTF--
		if err := a.compare(left[k][0], s); err != nil {
			return nil, err
		}
		left[k] = left[k][1:]
	}
	return a, nil
}

func (a *Agreement) compare(btf, dwarf *dwarfloc.Site) error {
	own, err := btf.Params()
	if err != nil {
		return err
	}
	of := make(map[string]*dwarfloc.Variable)
	for _, v := range own {
		of[v.Name] = v
	}
	params, err := dwarf.Params()
	if err != nil {
		return err
	}
	for _, v := range params {
		b := of[v.Name]
		located := b != nil && b.Located()
		switch {
		case located && v.Located():
			x, y := whereText(btf, &b.Loc), whereText(dwarf, &v.Loc)
			if x == y {
				a.Same++
				continue
			}
			if a.Other++; len(a.Different) < maxDifferent {
				a.Different = append(a.Different, fmt.Sprintf("%v: %s is at %s, in DWARF at %s", dwarf, v.Name, x, y))
			}
		case located:
			a.ByBTF++
		case v.Located():
			a.ByDWARF++
		default:
			a.Neither++
		}
	}
	return nil
}

// whereText prints a location. One piece is what is in it.
func whereText(s *dwarfloc.Site, l *loc.Location) string {
	if len(l.Pieces) == 1 {
		l = &l.Pieces[0].Loc
	}
	return l.Text(s.Image.Arch())
}

// Print prints it as a table, with the parameters that are in another place.
func (a *Agreement) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		n    int
		text string
	}{
		{a.Both, "instances in both"}, {a.OnlyBTF, "only in .BTF.inline"}, {a.Only, "only in DWARF"},
		{a.Same, "parameters of those in both: at the same place"}, {a.Other, "at another place"}, {a.ByBTF, "located only by .BTF.inline"},
		{a.ByDWARF, "located only by DWARF"}, {a.Neither, "located by neither"},
	} {
		terminal.Fprintf(t, "%d\t  %s\n", row.n, row.text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, d := range a.Different {
		terminal.Fprintf(w, "%s\n", d)
	}
	return nil
}
