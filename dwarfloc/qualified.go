package dwarfloc

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/types"
)

// Functions of C++ and Rust have a name of their own in the debug information, "get", and one with the
// namespaces and classes around it, "app::Box<int>::get", which is in their symbol. Units of other
// languages, and so kernels, have only the first.

// qualifies reports whether the unit's functions have qualified names.
func (u *unit) qualifies() bool { return dw.IsCPlusPlus(u.Lang) || u.Lang == dw.LangRust }

// QualifiedName returns the name of the site's function as people write it: in C++ and Rust with its
// namespaces and classes, without parameters. Elsewhere it is Function.
func (s *Site) QualifiedName() (string, error) {
	name := s.Function
	if s.told != nil {
		return s.told.qualified, nil
	}
	if s.u == nil || name != "" && !s.u.qualifies() {
		return name, nil
	}
	err := s.u.img.guard(func() error {
		if name == "" {
			name = s.u.img.index.NameOf(s.u.NameRefOf(&s.u.Recs[s.rec]))
		}
		if !s.u.qualifies() {
			return nil
		}
		e, err := s.u.Entry(s.DIE)
		if err != nil {
			return err
		}
		q, err := s.u.img.qualified(e)
		if q != "" {
			name = q
		}
		return err
	})
	return name, err
}

// cloneSuffix is what compilers add to the symbol of a copy of a function.
var cloneSuffix = regexp.MustCompile(`(\.(isra|constprop|part|cold|lto_priv|llvm)(\.[0-9]+)*)+$`)

// Place is SymbolOffset with the symbol's name as people write it.
func (s *Site) Place() string {
	text := s.SymbolOffset()
	if s.Symbol == "" || s.told == nil && (s.u == nil || !s.u.qualifies()) {
		return text
	}
	clone := cloneSuffix.FindString(s.Symbol)
	if q := demangled(strings.TrimSuffix(s.Symbol, clone)); q != "" {
		return q + clone + strings.TrimPrefix(text, s.Symbol)
	}
	return text
}

// Named reports whether a matcher selects one of the names that the site's function goes by: with all
// namespaces and classes around it or with the innermost ones only, with a space after a comma or
// without, and without the implementations that Rust numbers.
func (s *Site) Named(m Matcher) (bool, error) {
	name, err := s.QualifiedName()
	if err != nil || anyName(m, name) {
		return err == nil, err
	}
	if s.told != nil {
		return anyName(m, withoutTypes(name)), nil
	}
	if s.u.Lang == dw.LangRust && anyName(m, withoutTypes(name)) {
		return true, nil
	}
	// What a Rust symbol calls <str>::len is in the namespace core::str, and what it calls a closure has a
	// number.
	if !s.u.qualifies() || name[0] != '<' && !strings.Contains(name, "{") {
		return false, nil
	}
	scoped := ""
	err = s.u.img.guard(func() error {
		e, err := s.u.Entry(s.DIE)
		if err == nil {
			scoped, err = s.u.img.scopedName(e)
		}
		return err
	})
	return err == nil && anyName(m, scoped), err
}

// QualifiedNames returns the names of all functions with at least one site, as QualifiedName returns
// them, sorted, without duplicates. For an image without C++ and Rust it is FunctionNames.
func (img *Image) QualifiedNames(ctx context.Context) ([]string, error) {
	if img.told != nil {
		return img.toldNames(img.told.qualifiedNames)
	}
	qualifies := false
	err := img.guard(func() error {
		if err := img.prepare(true); err != nil {
			return err
		}
		asked := 0
		for i := range img.units {
			u := &img.units[i]
			if err := u.Load(); err != nil {
				return err
			}
			if u.Lang != 0 { // partial units have none
				asked++
			}
			if qualifies = u.qualifies(); qualifies || asked > fewUnits {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !qualifies {
		return img.FunctionNames(ctx)
	}
	var mu sync.Mutex
	all := make(map[string]struct{})
	type key struct {
		u    *unit
		root int32
	}
	seen := make(map[key]struct{})
	err = img.EachSite(ctx, nil, func(_ int, s *Site) error {
		if root := s.u.Recs[s.rec].Root; root >= 0 {
			mu.Lock()
			_, known := seen[key{s.u, root}]
			seen[key{s.u, root}] = struct{}{}
			mu.Unlock()
			if known {
				return nil
			}
		}
		name, err := s.QualifiedName()
		if err == nil && name != "" {
			mu.Lock()
			all[name] = struct{}{}
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(all))
	for n := range all {
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

// fewUnits is how many units are asked for their language, before an image counts as one without C++ and
// Rust: a kernel has thousands.
const fewUnits = 64

// qualified returns the qualified name of a function's entry: what its linkage name stands for, or its name
// with those of the namespaces and classes around it. It is "" if there is none.
func (img *Image) qualified(e dw.Entry) (string, error) {
	linkage, _, err := firstText(e, dw.AttrLinkageName)
	if err != nil {
		return "", err
	}
	if linkage != "" {
		if name := demangled(linkage); name != "" {
			return withTypes(name, e)
		}
	}
	return img.scopedName(e)
}

// withTypes adds to a Rust function's name the types that an instance of a generic one is for. They are in
// its own name in the debug information, "sum<i32>", and of symbols only in those of the newer form.
func withTypes(name string, e dw.Entry) (string, error) {
	if e.Unit.Lang != dw.LangRust {
		return name, nil
	}
	if strings.HasSuffix(name, ">") {
		return strings.Replace(name, "::<", "<", 1), nil
	}
	own, _, err := firstText(e, dw.AttrName)
	if err != nil {
		return "", err
	}
	plain, types, ok := strings.Cut(own, "<")
	if ok && plain != "" && strings.HasSuffix(own, ">") && (name == plain || strings.HasSuffix(name, "::"+plain)) {
		name += "<" + types
	}
	return name, nil
}

// withoutTypes returns a Rust function's name without the types that an instance is for.
func withoutTypes(name string) string {
	if !strings.HasSuffix(name, ">") {
		return name
	}
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch {
		case name[i] == '>' && name[i-1] != '-':
			depth++
		case name[i] == '<':
			if depth--; depth == 0 {
				return name[:i]
			}
		}
	}
	return name
}

// firstText returns the first text of an attribute along an entry's origins, and the last of these.
func firstText(e dw.Entry, attr dw.Attr) (text string, last dw.Entry, err error) {
	for range index.MaxOrigins {
		var origin dw.Value
		err := e.Attrs(func(a dw.Attr, v dw.Value) {
			switch {
			case a == attr && text == "":
				text = e.Unit.Text(v)
			case a == dw.AttrAbstractOrigin || a == dw.AttrSpecification:
				origin = v
			}
		})
		if err != nil || origin.Form == 0 {
			return text, e, err
		}
		if e, err = e.Unit.Target(origin); err != nil {
			return text, e, err
		}
	}
	return text, e, nil
}

// demangled returns a function's name without its parameters, or "" if a symbol is not mangled.
func demangled(symbol string) string {
	if len(symbol) > maxMangled {
		return ""
	}
	name, err := demangle.ToString(symbol, demangle.NoParams)
	if err != nil || name == symbol {
		return ""
	}
	return name
}

// maxMangled bounds the symbols that are demangled: a hostile one stands for a text that is as long as
// two to the power of its length.
const maxMangled = 4096

// scopedName returns a function's name with those of the namespaces and classes around it.
func (img *Image) scopedName(e dw.Entry) (string, error) {
	own, last, err := firstText(e, dw.AttrName)
	if err != nil || own == "" {
		return "", err
	}
	u := img.of(last.Unit)
	scopes, err := u.scopes()
	if err != nil {
		return "", err
	}
	if around := scopes[last.Off]; around != "" {
		return around + "::" + own, nil
	}
	return own, nil
}

// scopes returns the namespaces and classes around those of a unit's functions that are in some, by the
// offsets of their entries. An entry does not say what is around it, so all are found at once, and kept.
func (u *unit) scopes() (map[uint64]string, error) {
	if kept, ok := u.img.scoped.Load(u.Number); ok {
		return kept.(map[uint64]string), nil
	}
	all := make(map[uint64]string)
	var walk func(e dw.Entry, around string, depth int) error
	walk = func(e dw.Entry, around string, depth int) error {
		return e.Children(func(c dw.Entry) (bool, error) {
			switch c.Tag() {
			case dw.TagSubprogram:
				if around != "" {
					all[c.Off] = around
				}
			case dw.TagNamespace, dw.TagClassType, dw.TagStructType, dw.TagUnionType:
				if depth == types.MaxDepth || !c.HasChildren() {
					return true, nil
				}
				name, _, err := firstText(c, dw.AttrName)
				if err != nil {
					return false, err
				}
				if name == "" {
					name = "(anonymous namespace)"
				}
				if around != "" {
					name = around + "::" + name
				}
				return true, walk(c, name, depth+1)
			}
			return true, nil
		})
	}
	root, err := u.Entry(u.First)
	if err == nil {
		err = walk(root, "", 0)
	}
	if err != nil {
		return nil, err
	}
	u.img.scoped.Store(u.Number, all)
	return all, nil
}

// anyName reports whether a matcher selects a qualified name in one of its forms.
func anyName(m Matcher, name string) bool {
	if name == "" {
		return false
	}
	forms := []string{name}
	if c := strings.ReplaceAll(name, ", ", ","); c != name {
		forms = append(forms, c)
	}
	if parts := scopes(name); len(parts) > 1 {
		kept := slices.DeleteFunc(slices.Clone(parts), func(p string) bool {
			return strings.HasPrefix(p, "<impl ") || strings.HasPrefix(p, "{impl#")
		})
		if len(kept) < len(parts) {
			forms = append(forms, strings.Join(kept, "::"))
		}
	}
	for _, f := range forms {
		parts := scopes(f)
		for i := range parts {
			if m.Match(strings.Join(parts[i:], "::")) {
				return true
			}
		}
	}
	return false
}

// scopes cuts a qualified name at each "::" that is not between brackets.
func scopes(name string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '<', '(', '{', '[':
			depth++
		case '>', ')', '}', ']':
			if name[i] != '>' || i == 0 || name[i-1] != '-' { // the end of an arrow is no bracket
				depth = max(0, depth-1)
			}
		case ':':
			if depth == 0 && strings.HasPrefix(name[i:], "::") {
				out = append(out, name[from:i])
				from = i + 2
				i++
			}
		}
	}
	return append(out, name[from:])
}
