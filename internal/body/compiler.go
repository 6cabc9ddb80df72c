package body

import (
	"cmp"
	"slices"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/producer"
)

// compiler is what a unit says of its compiler.
type compiler struct {
	producer.Compiler
	views, entryViews bool // the unit's abbreviations have location views; those of inlined bodies
	lists             bool // and lists of locations; of other compilers than GCC
}

func (u *Unit) compiler() *compiler {
	u.compilerOnce.Do(func() {
		u.compiled.Compiler = producer.Of(u.Producer())
		u.compiled.entryViews = u.Writes(dw.AttrGNUEntryView)
		u.compiled.views = u.compiled.entryViews || u.Writes(dw.AttrGNULocviews)
		u.compiled.lists = !u.compiled.GNU && u.WritesLists()
	})
	return &u.compiled
}

// Optimized reports whether the unit is known to be optimized.
func (u *Unit) Optimized() bool { return u.compiler().Optimized }

// Unoptimized reports whether the unit is known not to be.
func (u *Unit) Unoptimized() bool { return u.compiler().Unoptimized }

// Lists reports whether a variable of a unit that GCC did not compile has different places. Without optimization LLVM gives each a slot of its own, in which statements assign it.
func (u *Unit) Lists() bool { return u.compiler().lists }

// RowsOfCalls reports whether the line table has a row for each call, even of an
// inlined function, as GCC's has.
func (u *Unit) RowsOfCalls() bool { return u.GNU() }

// GNU reports whether GCC compiled the unit.
func (u *Unit) GNU() bool { return u.compiler().GNU }

// MarksStatements reports whether GCC marked where statements begin in the function that a record is, or is inlined into: see producer.Marked.
func (u *Unit) MarksStatements(rec int32) (bool, error) {
	if !u.GNU() {
		return false, nil
	}
	// Without link-time optimization all functions of a unit have markers if one has views at its inlined bodies, which need them.
	if c := u.compiler(); c.Together && c.entryViews {
		return true, nil
	}
	ranges, err := u.OutermostRanges(rec)
	if err != nil {
		return false, err
	}
	for _, r := range ranges {
		rows, err := u.RowsIn(r)
		if err != nil {
			return false, err
		}
		lo, _ := slices.BinarySearchFunc(rows, r.Lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
		hi := lo
		for hi < len(rows) && rows[hi].Addr < r.Hi {
			hi++
		}
		if producer.Marked(rows[lo:hi]) {
			if u.compiler().Together {
				return true, nil
			}
			return u.marksBody(rec, rows)
		}
	}
	return false, nil
}

// marksBody reports whether the markers of an inlined body are there: link-time optimization inlines some without. Then the rows of the
// body's text are those of its instructions, which begin no statement in a function with markers, and there may be none: what GCC 11 and 12 leave
// of a body in a loop can be a body inlined into that.
func (u *Unit) marksBody(rec int32, rows []dw.Row) (bool, error) {
	if u.Recs[rec].Flags&index.Inlined == 0 {
		return true, nil
	}
	e, err := u.Entry(u.Off + uint64(u.Recs[rec].Off))
	if err != nil {
		return false, err
	}
	texts := u.declarations()
	own, err := texts.of(u, rec, e)
	if err != nil || own == (Text{}) {
		return err == nil, err
	}
	ranges, err := u.extentOf(e)
	if err != nil {
		return false, err
	}
	for _, r := range ranges {
		i, _ := slices.BinarySearchFunc(rows, r.Lo, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
		for ; i < len(rows) && (rows[i].Addr < r.Hi || rows[i].Addr == r.Lo); i++ {
			if x := &rows[i]; x.Stmt && (x.Line != own.Line || x.Column != own.Column) && texts.at(u, x) == own {
				return true, nil
			}
		}
	}
	return false, nil
}

// Whole reports whether the unit is what one source file was compiled to. Link-time optimization spreads a file's functions over several
// units, which call each other's clones.
func (u *Unit) Whole() bool { return u.compiler().Together }

// Views reports whether GCC followed variables by location views, and wrote them.
func (u *Unit) Views() bool { return u.compiler().views }

// TracksAssignments reports whether GCC followed variables by their assignments, as it does
// with optimization. Otherwise it describes registers, and a view has no value of its own.
func (u *Unit) TracksAssignments() bool { return u.compiler().AssignmentsTracked }

// IsGo reports whether Go's own compiler or assembler made the unit. gccgo's functions use
// the calling convention of C, on stacks that do not move.
func (u *Unit) IsGo() bool { return u.Lang == dw.LangGo && !u.GNU() }

// Marked reports whether the line table has GCC's markers of statements: then rows of
// instructions begin no statement.
func (c *Code) Marked() bool { return c.marked && c.Unit.GNU() }
