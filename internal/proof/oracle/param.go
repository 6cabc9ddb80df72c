package oracle

import (
	"slices"
)

// Source is what the debug information contains about a parameter at a site.
type Source uint8

const (
	// NoLocation is neither a location nor a constant, or no entry at the site at all.
	NoLocation Source = iota
	// NotAtSite is a location list that covers only other addresses.
	NotAtSite
	// Constant is DW_AT_const_value.
	Constant
	// Expression is a DWARF expression.
	Expression
)

// Param is a parameter of a function at a site.
type Param struct {
	Name   string
	Type   TypeInfo
	Absent bool // the site's own entry leaves it out
	Source Source
	Rule   Rule
	Expr   []byte // of Expression
	Const  []byte // of Constant: a block or a string, or 8 bytes of a number

	Others []Param // further entries for the same parameter

	number bool // Const is a number
	r      *Reader
	typed  *node // the entry that names the type
}

// params fills in the parameters of a site: those of the abstract instance in its order,
// then those that only the concrete entry has.
func (r *Reader) params(s *Site, n *node) error {
	abstract, err := r.last(n)
	if err != nil {
		return err
	}
	if abstract == n {
		for _, c := range n.children {
			if c.Tag == tagFormalParameter && !isResult(c) {
				if err := r.param(s, c, false); err != nil {
					return err
				}
			}
		}
		return nil
	}
	used := make(map[*node]bool)
	for _, p := range abstract.children {
		if p.Tag != tagFormalParameter {
			continue
		}
		var own []*node
		for _, c := range n.children {
			// The compiler may describe a parameter that a clone lost as a variable.
			if used[c] || c.Tag != tagFormalParameter && c.Tag != tagVariable {
				continue
			}
			from, err := r.madeFrom(c, p)
			if err != nil {
				return err
			}
			if from {
				used[c] = true
				own = append(own, c)
			}
		}
		if isResult(p) {
			continue
		}
		if len(own) == 0 {
			c, err := r.twin(n, abstract, p)
			if err != nil {
				return err
			}
			if c != nil && !used[c] {
				used[c] = true
				own = append(own, c)
			}
		}
		if len(own) == 0 {
			if err := r.param(s, p, true); err != nil {
				return err
			}
			continue
		}
		first := r.best(own)
		if err := r.param(s, own[first], false); err != nil {
			return err
		}
		at := len(s.Params) - 1
		for i, c := range own {
			if i == first {
				continue
			}
			if err := r.param(s, c, false); err != nil {
				return err
			}
			s.Params[at].Others = append(s.Params[at].Others, s.Params[at+1])
			s.Params = s.Params[:at+1]
		}
	}
	for _, c := range n.children {
		if c.Tag == tagFormalParameter && !used[c] && !isResult(c) {
			if err := r.param(s, c, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// isResult reports whether an entry is that of a Go function's result: Go marks it as what other languages pass by reference.
func isResult(n *node) bool {
	const languageGo = 0x16
	language, _ := n.unit.root.Val(attrLanguage).(int64)
	marked, _ := n.Val(attrVarParameter).(bool)
	return marked && language == languageGo
}

// twin returns the instance of a variable that stands for a parameter, or nil: LLVM describes some
// parameters of inlined functions a second time, as a variable with the same name and declaration (rustc
// 1.96), and then only that is in the instance.
func (r *Reader) twin(n, abstract, p *node) (*node, error) {
	for _, v := range abstract.children {
		if v.Tag != tagVariable || p.Val(attrName) == nil {
			continue
		}
		same := true
		for _, a := range []attr{attrName, attrDeclFile, attrDeclLine} {
			same = same && v.Val(a) == p.Val(a)
		}
		if !same {
			continue
		}
		for _, c := range n.children {
			if c.Tag != tagVariable {
				continue
			}
			if from, err := r.madeFrom(c, v); from || err != nil {
				return c, err
			}
		}
	}
	return nil, nil
}

// best chooses one of several entries for a parameter. A constant or an address wins: GCC
// writes it after the register that callers of a .constprop clone no longer set. Otherwise
// it is the first entry with a location, and without any the first entry.
func (r *Reader) best(own []*node) int {
	for i, c := range own {
		b, _ := c.Val(attrLocation).([]byte)
		if c.field(attrConstValue) != nil || len(b) == r.f.word+2 && b[0] == 0x03 && b[r.f.word+1] == 0x9f {
			return i
		}
	}
	for i, c := range own {
		if c.field(attrLocation) != nil {
			return i
		}
	}
	return 0
}

// last follows abstract origins to their end.
func (r *Reader) last(n *node) (*node, error) {
	for range maxChain {
		next, err := r.refer(n, attrAbstractOrigin)
		if err != nil || next == nil {
			return n, err
		}
		n = next
	}
	return n, nil
}

// madeFrom reports whether an entry is a concrete instance of another.
func (r *Reader) madeFrom(n, origin *node) (bool, error) {
	for range maxChain {
		next, err := r.refer(n, attrAbstractOrigin)
		if err != nil || next == nil {
			return false, err
		}
		if next == origin {
			return true, nil
		}
		n = next
	}
	return false, nil
}

func (r *Reader) param(s *Site, n *node, absent bool) error {
	p := Param{Absent: absent, Rule: RuleNone, r: r}
	name, _, err := r.inherit(n, attrName)
	if err != nil {
		return err
	}
	if name != nil {
		p.Name, _ = name.Val.(string)
	}
	_, typed, err := r.inherit(n, attrType)
	if err != nil {
		return err
	}
	p.Type = TypeInfo{Size: -1}
	p.typed = typed
	if typed != nil {
		if p.Type, err = r.typeOf(typed); err != nil {
			return err
		}
	}
	loc := n.field(attrLocation)
	value := n.field(attrConstValue)
	if value == nil && loc == nil {
		// A constant of the abstract instance applies to all its instances.
		if value, _, err = r.inherit(n, attrConstValue); err != nil {
			return err
		}
	}
	switch {
	case value != nil:
		p.Source, p.Rule, p.Const = Constant, RuleConstant, constant(value, r.f.big)
		switch value.Val.(type) {
		case int64, uint64:
			p.number = true
		}
	case loc != nil:
		p.Expr, p.Rule, err = r.location(s, loc, n.field(attrGNULocviews))
		if err != nil {
			return err
		}
		p.Source = Expression
		if p.Rule == RuleNone {
			p.Source = NotAtSite
		}
		if p.Source == Expression && len(p.Expr) == 0 {
			p.Source = NoLocation
		}
	}
	s.Params = append(s.Params, p)
	return nil
}

// Known returns the object of at least size bytes that a Constant is: of a number, its low bytes.
func (p *Param) Known(size int) Result {
	b := p.Const
	if n := len(b); p.number && p.r.f.big && size < n {
		b = b[n-size:]
	}
	if len(b) < size {
		b = append(slices.Clone(b), make([]byte, size-len(b))...)
	}
	return Result{Kind: IsBytes, Bytes: b}
}

// constant is the bytes of a DW_AT_const_value, sign-extended to 8 when it is a
// number.
func constant(f *field, big bool) []byte {
	switch v := f.Val.(type) {
	case int64:
		return bytesOf(uint64(v), 8, big)
	case uint64:
		return bytesOf(v, 8, big)
	case []byte:
		return v
	case string:
		return append([]byte(v), 0)
	}
	return nil
}
