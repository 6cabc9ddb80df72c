package sites

import (
	"context"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/suggest"
)

// staticPrefix is how the name of a statically defined probe begins in a definition.
const staticPrefix = "%sdt_"

// listStatic is List for statically defined probes.
func listStatic(ctx context.Context, img *dwarfloc.Image, sel *Selection) (*dwarfloc.SiteList, error) {
	l, names, err := inside.StaticProbes(img, ctx, static{sel})
	if err != nil || l.Len() > 0 {
		return l, err
	}
	missing := &NotFoundError{Image: img.Path(), Pattern: staticPrefix + sel.Provider.String() + ":" + sel.Functions.String()}
	if missing.Why = "no statically defined probe has such a name"; len(names) == 0 {
		missing.Why = "the file has no statically defined probes"
	}
	for _, n := range suggest.Nearest(sel.Provider.String()+":"+sel.Functions.String(), slices.Values(names), maxNearest) {
		missing.Nearest = append(missing.Nearest, staticPrefix+n)
	}
	return nil, missing
}

// static selects names PROVIDER:NAME.
type static struct{ sel *Selection }

func (s static) Match(name string) bool {
	provider, event, ok := strings.Cut(name, ":")
	return ok && s.sel.Provider.Match(provider) && s.sel.Functions.Match(event) && (s.sel.Filter == nil || s.sel.Filter.Match(event))
}
func (s static) Literal() (string, bool) { return "", false }
