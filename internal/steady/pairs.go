package steady

import (
	"bytes"

	"github.com/bpfprologue/bpfprologue/internal/entries"
)

// variable is one of a function that a body is inlined into, and where it is.
type variable struct {
	name   string
	expr   []byte
	number []byte // as numberOf returns it, if it is one
}

// placesOf returns those of a spot's body.
func placesOf(s *entries.Spot) (out []variable, err error) {
	_, err = s.OfCallers(func(x *entries.Scoped) (bool, error) {
		its, ok := s.Placed(x)
		if !ok && x.Constant.Form == 0 {
			return false, nil
		}
		name, err := x.Text()
		if err != nil {
			return false, nil //nolint:nilerr // it is reported where the variable is asked for
		}
		out = append(out, variable{name, its.Expr, numberOf(&x.Var, its.Expr)})
		return false, nil
	})
	return out, err
}

// A statement that makes of several numbers each the same one makes nothing. So where a parameter is a number behind a statement, and a variable of the caller's has the
// same one, in all bodies that come from a call, and not always one number, the call passes that variable, and the statement leaves it.

// pair is a parameter, and a variable of the caller's that may be what a call passes for it.
type pair struct {
	effect
	caller, variable string
	callLine         int
	callColumn       uint32
}

// pairOf returns that of a spot's call, for the body as a whole.
func pairOf(s *entries.Spot, parameter, variable string) pair {
	u := s.U
	caller := u.Index.NameOf(u.NameRefOf(&u.Recs[u.Recs[s.Rec].Parent]))
	return pair{effect{parameter: parameter}, caller, variable, s.CallLine, s.CallColumn}
}

// numbers are those that both have behind a statement.
type numbers struct {
	first   string
	several bool // there are others
	differ  bool // one had another number than the other
}

// whole notes what the callers' variables have where a body without markers begins, and its parameters are numbers.
func (g *function) whole(s *entries.Spot) error {
	if s.Kind != entries.Inline || s.U.Recs[s.Rec].Parent < 0 {
		return nil
	}
	e, err := s.Entry()
	if err != nil {
		return err
	}
	var callers []variable
	return s.U.Img.EachParam(e, func(x *entries.Var) (bool, error) {
		var expr []byte
		if x.Location.Form != 0 {
			var err error
			if expr, err = s.Note(x); err != nil {
				return true, nil //nolint:nilerr // it is reported where the parameter is asked for
			}
		}
		name, err := x.Text()
		number := numberOf(x, expr)
		if err != nil || number == nil {
			return true, nil //nolint:nilerr // likewise
		}
		if callers == nil {
			if callers, err = placesOf(s); err != nil || len(callers) == 0 {
				return false, err
			}
		}
		g.pair(s, name, make([]statement, 1), number, callers)
		return true, nil
	})
}

// pair notes what variables of the callers have where a parameter is a number, behind a group of statements.
func (g *function) pair(s *entries.Spot, parameter string, group []statement, number []byte, callers []variable) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range callers {
		if c.number == nil {
			continue
		}
		for i := range group {
			k := pairOf(s, parameter, c.name)
			k.effect = group[i].on(parameter)
			n := g.pairs[k]
			switch {
			case !bytes.Equal(c.number, number):
				n.differ = true
			case n.first == "":
				n.first = string(number)
			case n.first != string(number):
				n.several = true
			}
			g.pairs[k] = n
		}
	}
}
