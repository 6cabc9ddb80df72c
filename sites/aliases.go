package sites

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	kinds "github.com/bpfprologue/bpfprologue/internal/place"
)

// A function can have several symbols at one address, and debug information names one of them: malloc is a symbol of __libc_malloc. Others are
// of functions that it does not have at all.

// aliases are the symbols that a selection's functions may have.
type aliases struct {
	selects func(symbol string) bool // nil if there is nothing to look for
	literal bool
	// pattern is set if functions with other names are looked for too, where debug information has some. Then entries are those that
	// it has, by the addresses of their symbols.
	pattern bool
	mu      sync.Mutex
	entries map[uint64]bool
}

// newAliases returns what a selection looks for. qualified is set if it is of names with namespaces, which symbols have mangled.
func newAliases(img *dwarfloc.Image, sel *Selection, m dwarfloc.Matcher, qualified bool) (*aliases, error) {
	a := new(aliases)
	if inside.AnsweredBy(img) == answers.BySymbols {
		return a, nil // where all names are of symbols
	}
	name, literal := sel.Functions.Literal()
	if a.literal = literal; literal {
		// The symbol of a clone is one of the function: _Z3addi.isra.0.
		a.selects = func(symbol string) bool {
			rest, ok := strings.CutPrefix(symbol, name)
			return ok && (rest == "" || rest[0] == '.')
		}
		return a, nil
	}
	a.selects = m.Match
	if qualified || inside.AnsweredBy(img) != "" {
		return a, nil
	}
	// A kernel has very many symbols, and few functions with two.
	kernel, err := kinds.IsKernel(img)
	if a.pattern = err == nil && !kernel; a.pattern {
		a.entries = make(map[uint64]bool)
	}
	return a, err
}

// saw notes a site of a function that the debug information names.
func (a *aliases) saw(s *dwarfloc.Site) {
	if !a.pattern || s.Kind != dwarfloc.SiteEntry {
		return
	}
	addr := s.Addr
	if s.AfterPrologue || s.LocalEntry {
		if sym := inside.File(s.Image).SymbolAt(addr, ""); sym != nil {
			addr = sym.Addr
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries[addr] = true
}

// add adds to the sites of functions that m selects by the names which the debug information has those that have another name and, if
// there are none at all, those that only a symbol names.
func (a *aliases) add(ctx context.Context, img *dwarfloc.Image, sel *Selection, m dwarfloc.Matcher, l *dwarfloc.SiteList, k *kept) (*dwarfloc.SiteList, error) {
	found := k.matched.Load()
	if a.selects == nil || found && !a.pattern {
		return l, nil
	}
	if !a.literal || sel.Filter == nil {
		others, err := a.others(ctx, img, k)
		if err != nil || others != nil && others.Len() > 0 {
			if err != nil || !found {
				return others, err
			}
			return joined(ctx, img, l, others)
		}
	}
	if k.matched.Load() || k.source != nil {
		return l, nil
	}
	return inside.OnlySymbols(img, ctx, m, k.keep)
}

// others returns the functions that the debug information has by another name than a symbol, or nil if there are none. Inlined instances
// have no symbols.
func (a *aliases) others(ctx context.Context, img *dwarfloc.Image, k *kept) (*dwarfloc.SiteList, error) {
	at := make(map[uint64]bool)
	for s := range inside.File(img).Symbols() {
		// What is mangled has words in it that are no part of the function's name.
		plain := !s.Label && !strings.HasPrefix(s.Name, "_Z") && !strings.HasPrefix(s.Name, "_R")
		if (a.literal || plain) && !a.entries[s.Addr] && a.selects(s.Name) {
			at[s.Addr] = true
		}
	}
	if len(at) == 0 {
		return nil, img.Changed() // if it has, not all symbols were seen
	}
	return inside.ListAt(img, ctx, at, k.keep)
}

// joined returns two lists as one.
func joined(ctx context.Context, img *dwarfloc.Image, a, b *dwarfloc.SiteList) (*dwarfloc.SiteList, error) {
	all, err := a.Sites(ctx)
	if err != nil {
		return nil, err
	}
	others, err := b.Sites(ctx)
	return inside.Held(img, append(slices.Clip(all), others...)), err
}
