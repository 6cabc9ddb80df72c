// Package qualify finds the names of functions as people write them: in C++ and Rust with the namespaces and classes around
// them, without parameters.
//
//	var names qualify.Names
//	name, err := names.Of(entry) // "app::Box<int>::get"
package qualify

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Names finds the names of one image's functions, and keeps what it has found. The zero value is ready. Several goroutines may use it.
type Names struct {
	scopes sync.Map // by the number of a unit: see scopesOf
}

// Has reports whether a unit's functions have qualified names.
func Has(u *dw.Unit) bool { return dw.IsCPlusPlus(u.Lang) || u.Lang == dw.LangRust }

// maxDepth bounds how deeply namespaces and classes nest.
const maxDepth = 64

// cloneSuffix is what compilers add to the symbol of a copy of a function.
var cloneSuffix = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(\.(isra|constprop|part|cold|lto_priv|llvm)(\.[0-9]+)*)+$`)
})

// Symbol returns a symbol's name as people write it, with what marks a clone, or "" if it is not mangled.
func Symbol(symbol string) string {
	if !strings.HasPrefix(symbol, "_") { // as all do that are mangled
		return ""
	}
	clone := cloneSuffix().FindString(symbol)
	if q := demangled(strings.TrimSuffix(symbol, clone)); q != "" {
		return q + clone
	}
	return ""
}

// Of returns the qualified name of a function's entry: what its linkage name stands for, or its name
// with those of the namespaces and classes around it. It is "" if there is none.
func (n *Names) Of(e dw.Entry) (string, error) {
	linkage, _, err := firstText(e, dw.AttrLinkageName)
	if err != nil {
		return "", err
	}
	if linkage != "" {
		if name := demangled(linkage); name != "" {
			return withTypes(name, e)
		}
	}
	return n.Scoped(e)
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

// WithoutTypes returns a Rust function's name without the types that an instance is for.
func WithoutTypes(name string) string {
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

// Scoped returns a function's name with those of the namespaces and classes around it.
func (n *Names) Scoped(e dw.Entry) (string, error) {
	own, last, err := firstText(e, dw.AttrName)
	if err != nil || own == "" {
		return "", err
	}
	scopes, err := n.scopesOf(last.Unit)
	if err != nil {
		return "", err
	}
	if around := scopes[last.Off]; around != "" {
		return around + "::" + own, nil
	}
	return own, nil
}

// scopesOf returns the namespaces and classes around those of a unit's functions that are in some, by the
// offsets of their entries. An entry does not say what is around it, so all are found at once, and kept.
func (n *Names) scopesOf(u *dw.Unit) (map[uint64]string, error) {
	if kept, ok := n.scopes.Load(u.Number); ok {
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
				if depth == maxDepth || !c.HasChildren() {
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
	n.scopes.Store(u.Number, all)
	return all, nil
}

// Matches reports whether a matcher selects a qualified name in one of its forms.
func Matches(m interface{ Match(name string) bool }, name string) bool {
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

// Own returns what a qualified name has after namespaces and classes.
func Own(name string) string {
	parts := scopes(name)
	return parts[len(parts)-1]
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
