package pack

import (
	"cmp"
	"context"
	"sort"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// Units can give one name to different types. What a definition names, as in a cast, is the type that the site's own unit has, or else
// that of the first unit, which
// the order of types in BTF does not tell: a tag does. What a site's own unit has is not in packs.

// words are the kinds of types that have names of their own, by the word before these.
var words = map[uint32]string{kindStruct: "struct", kindUnion: "union", kindEnum: "enum", kindEnum64: "enum"}

// name is a name of a type.
type name struct{ word, text string }

// ambiguous returns the names that several types have.
func (t *typeTable) ambiguous() (out []name) {
	count := make(map[name]int)
	add := func(kind uint32, text string) {
		if word := words[kind]; word != "" && text != "" {
			count[name{word, text}]++
		}
	}
	if t.base != nil {
		for id := uint32(1); id < t.bound; id++ {
			add(t.base.kind(id), t.base.name(id))
		}
	}
	seen := make([]bool, len(t.final))
	for i := range t.nodes {
		if c := t.classes[i]; !seen[c] && t.nodes[i].tag != packfile.TagOther {
			seen[c] = true
			add(t.nodes[i].kind, t.nodes[i].name)
		}
	}
	for n, c := range count {
		if c > 1 {
			out = append(out, n)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return cmp.Or(cmp.Compare(out[i].word, out[j].word), cmp.Compare(out[i].text, out[j].text)) < 0
	})
	return out
}

// maxAmbiguous bounds the names that are looked up: kernels have twenty, and each takes a look at many units.
const maxAmbiguous = 500

// settleNames finds out which types ambiguous names mean. Types that only functions declare have no such names.
func (t *typeTable) settleNames(ctx context.Context, img *dwarfloc.Image) error {
	names := t.ambiguous()
	nodes := len(t.nodes)
	for _, n := range names[:min(len(names), maxAmbiguous)] {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		to, err := inside.ImageType(img, n.word+" "+n.text)
		if err != nil {
			return err
		}
		if to == nil {
			continue // no unit has it outside of functions
		}
		r, err := t.of(to)
		if err != nil {
			return err
		}
		if r != 0 {
			t.first = append(t.first, ref(r))
		}
	}
	if len(t.nodes) > nodes {
		t.settle()
	}
	return nil
}
