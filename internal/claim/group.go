package claim

import (
	"math"
	"slices"
)

// A Group is what the bodies of one function say of one of its parameters by one kind of instruction, where debug information knows the
// parameter: the address that the instruction accesses, or the register that it passes, less the parameter. A group that is large enough, and
// says the same everywhere, speaks for the bodies where debug information has lost the parameter.
type Group struct {
	by        []controls // by form
	fixed     []uint64   // a few values of the parameter that were constants
	loose     int        // controls where it was none
	limits    []limit    // of the constant parameters
	Undecided int        // controls whose values could not be compared
}

// Kind says what a witness is, and in what bodies it is. Bodies of a function that differ in Params were compiled to different code.
type Kind struct {
	// Shape is equal for instructions that do the same, or is the address of the function that is called.
	Shape uint64
	// Register is that of an argument at a Call, by its DWARF number.
	Register uint16
	Call     bool
	Target   bool // the witness is the function that is called
	// Inner is set if what is called is inlined: Shape is a hash of it and of where it is called, Register the number of its parameter.
	Inner bool
	// Member is set for an instruction that loads what is not volatile: it may be of whoever computes an argument.
	Member bool
	// Line and Column are those of the statement that the instruction was compiled for: other ones of the function may do the same with another
	// pointer, in bodies that go another way.
	Line, Column uint32
	// Params has a letter for each parameter of the function: what debug information says of it.
	Params string
}

// Letters of Kind.Params.
const (
	IsConstant = 'c'
	IsLocated  = 'l'
	IsLost     = 'x'
	IsAsked    = '.' // the parameter itself
)

// form says how a distance depends on a constant parameter: by its number in units of 1<<shift, of so many bytes each. of is the parameter, or
// -1 for a distance that depends on none.
type form struct {
	of    int
	shift uint8
	size  uint64
}

// forms are those that are tried: the word and the byte of a bit (BIT_WORD of include/linux/bits.h, CONST_MASK_ADDR of
// arch/x86/include/asm/bitops.h), for each constant parameter.
func forms(params string) []form {
	out := []form{{of: -1}}
	for i := range params {
		if params[i] == IsConstant {
			out = append(out, form{i, 6, 8}, form{i, 5, 4}, form{i, 3, 1})
		}
	}
	return out
}

func (f form) distance(constants []uint64) uint64 {
	if f.of < 0 {
		return 0
	}
	return constants[f.of] >> f.shift * f.size
}

// controls are what a form leaves of the distances.
type controls struct {
	rest   uint64
	equal  int32
	differ int32
}

type limit struct{ least, most uint64 }

// Enough is how many controls a group needs.
const Enough = 20

// enoughMembers is how many one of a Member needs.
const enoughMembers = 200

// Enough is how many controls a group of the kind needs.
func (k *Kind) Enough() int {
	if k.Member {
		return enoughMembers
	}
	return Enough
}

// distinct is how many different values it needs if the parameter was a constant: an instruction about another fixed address has the same distance
// from one constant each time.
const distinct = 3

// Add adds a control: the witness's value less the parameter's, and the numbers of the constant parameters. value is the parameter's, if it is
// fixed.
func (g *Group) Add(params string, distance, value uint64, fixed bool, constants []uint64) {
	switch {
	case !fixed:
		g.loose++
	case len(g.fixed) < distinct && !slices.Contains(g.fixed, value):
		g.fixed = append(g.fixed, value)
	}
	all := forms(params)
	if g.by == nil {
		g.by = make([]controls, len(all))
		if len(all) > 1 {
			g.limits = slices.Repeat([]limit{{math.MaxUint64, 0}}, len(params))
		}
	}
	for i, f := range all {
		switch c, rest := &g.by[i], distance-f.distance(constants); {
		case c.equal == 0:
			c.rest, c.equal = rest, 1
		case c.rest == rest:
			c.equal++
		default:
			c.differ++
		}
	}
	for i := range g.limits {
		l := &g.limits[i]
		l.least, l.most = min(l.least, constants[i]), max(l.most, constants[i])
	}
}

// Contradict adds a control that differs in each form.
func (g *Group) Contradict() {
	if g.by == nil {
		g.by = make([]controls, 1)
	}
	g.by[0].differ++
}

// Distance returns the witness's value less the parameter's, by the group of a kind, in a body with some constant parameters. ok is false if the group does not speak
// there: it has too few controls, or of too few values, all forms are contradicted, or those that are not differ; or if a constant is beyond those of all controls.
func (g *Group) Distance(k *Kind, constants []uint64) (distance uint64, ok bool) {
	for i, f := range forms(k.Params) {
		if g.by == nil || g.by[i].differ > 0 {
			continue
		}
		d := g.by[i].rest + f.distance(constants)
		if ok && d != distance {
			return 0, false
		}
		distance, ok = d, true
	}
	ok = ok && g.enough(k)
	for i, l := range g.limits {
		ok = ok && constants[i] >= l.least && constants[i] <= l.most
	}
	return distance, ok
}

// enough reports whether the group of a kind has enough controls, of enough values.
func (g *Group) enough(k *Kind) bool {
	n := int(g.by[0].equal + g.by[0].differ) // each control counts for each form
	return n >= k.Enough() && n >= g.Undecided && (g.loose >= Enough || len(g.fixed) >= distinct)
}

// Speaks reports whether there can be a body for which the group of a kind says something.
func (g *Group) Speaks(k *Kind) bool {
	return g.by != nil && g.enough(k) && slices.ContainsFunc(g.by, func(c controls) bool { return c.differ == 0 })
}

// Count is how many controls of some groups there are: those that are equal, those of groups in which another one differs, and those that do.
type Count = struct {
	Equal    int `json:"equal"`
	Silenced int `json:"silenced"`
	Differ   int `json:"differ"`
}

// Counts returns how many controls agree in the best form, and how many contradict it.
func (g *Group) Counts() (equal, differ int) {
	for i := range g.by {
		if c := &g.by[i]; i == 0 || int(c.differ) < differ {
			equal, differ = int(c.equal), int(c.differ)
		}
	}
	return equal, differ
}
