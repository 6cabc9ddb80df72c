package viewless

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/walk"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
)

// Result compares the parameters at the sites of an image that views leave where they are.
type Result struct {
	Same     int // that are sure, and that are where the views say, or where the views are in doubt
	Doubtful int // whose location is the same by views, and is in doubt without
	Other    []Difference
}

// Difference is a parameter that is sure without views, and by views is elsewhere.
type Difference struct {
	Site, Parameter string
	Without, With   string // locations
}

// place is where an answer is, in both images.
type place struct {
	die, addr uint64
	name      string
}

// answer is a parameter's location, or "" if there is none.
type answer struct {
	location string
	doubtful bool
	site     string
}

// Compare compares the answers of two images of one program.
func Compare(ctx context.Context, with, without *dwarfloc.Image) (*Result, error) {
	seen, err := answers(ctx, with)
	if err != nil {
		return nil, err
	}
	asked, err := answers(ctx, without)
	if err != nil {
		return nil, err
	}
	r := new(Result)
	for at, a := range asked {
		b := seen[at]
		switch {
		case a.location == "" || b.location == "":
		case a.location == b.location && a.doubtful:
			if !b.doubtful {
				r.Doubtful++
			}
		case a.location == b.location || !a.doubtful && b.doubtful:
			r.Same++
		case !a.doubtful:
			r.Other = append(r.Other, Difference{Site: a.site, Parameter: at.name, Without: a.location, With: b.location})
		}
	}
	slices.SortFunc(r.Other, func(x, y Difference) int {
		return slices.Compare([]string{x.Site, x.Parameter, x.Without}, []string{y.Site, y.Parameter, y.Without})
	})
	return r, nil
}

// answers asks an image for all parameters.
func answers(ctx context.Context, img *dwarfloc.Image) (map[place]answer, error) {
	by := make([]map[place]answer, runtime.GOMAXPROCS(0))
	for i := range by {
		by[i] = make(map[place]answer)
	}
	err := walk.Answers(ctx, img, func(worker int, s *dwarfloc.Site, params []*dwarfloc.Variable) error {
		site := s.String()
		for _, v := range params {
			a := answer{site: site}
			if v.Located() {
				a.location, a.doubtful = v.Loc.Text(img.Arch()), v.Loc.Doubt != reasons.None
			}
			by[worker][place{s.DIE, s.Addr, v.Name}] = a
		}
		return nil
	})
	all := by[0]
	for _, m := range by[1:] {
		maps.Copy(all, m)
	}
	return all, err
}

// Print writes a page of Markdown.
func (r *Result) Print(w io.Writer) {
	fmt.Fprintf(w, "%d parameters are sure without views, and where the views say; %d are doubtful, and there; %d are elsewhere.\n\n", r.Same, r.Doubtful, len(r.Other))
	if len(r.Other) == 0 {
		return
	}
	fmt.Fprint(w, "| site | parameter | without views | by views |\n| --- | --- | --- | --- |\n")
	for _, d := range r.Other {
		fmt.Fprintf(w, "| %s | %s | `%s` | `%s` |\n", d.Site, d.Parameter, d.Without, d.With)
	}
}
