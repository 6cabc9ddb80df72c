package body

import (
	"sort"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Text is the source text of a function: from the line that declares it to the next function
// in the file.
type Text struct {
	File   int32 // number of the file in texts.files; 0 if it is not known
	Line   uint32
	Column uint32 // of the declaration
}

// texts knows where the functions of a unit are declared.
type texts struct {
	mu     sync.Mutex
	files  map[string]int32 // numbers, from 1, by path
	index  map[uint64]int32 // likewise, by the index in the unit's line table
	lines  [][]Text         // declarations, by file, sorted
	byRoot []Text           // by the record that has the name
	known  []bool           // likewise, whether it is in byRoot
	firsts map[Text]uint32  // see first
	read   bool
}

// declarations returns the unit's texts.
func (u *Unit) declarations() *texts {
	for {
		if t := u.texts.Load(); t != nil {
			return t
		}
		u.texts.CompareAndSwap(nil, new(texts))
	}
}

// number returns the number of a file in a line table.
func (t *texts) number(u *dw.Unit, own bool, index uint64) int32 {
	if n, ok := t.index[index]; ok && own {
		return n
	}
	path := u.File(index)
	n := int32(0)
	if path != "" {
		if n = t.files[path]; n == 0 {
			n = int32(len(t.files) + 1)
			t.files[path] = n
		}
	}
	if own {
		t.index[index] = n
	}
	return n
}

// prepare reads the declarations of all functions of the unit.
func (t *texts) prepare(u *Unit) error {
	if t.read {
		return nil
	}
	t.files, t.index = make(map[string]int32), make(map[uint64]int32)
	n := len(u.Recs)
	t.byRoot, t.known = make([]Text, n), make([]bool, n)
	live := make([]bool, n) // functions that have code
	for i := range u.Recs {
		if r := &u.Recs[i]; r.Flags&index.HasPC != 0 && r.Root >= 0 {
			live[r.Root] = true
		}
	}
	defined, err := definitions(u)
	if err != nil {
		return err
	}
	for i := range u.Recs {
		if u.Recs[i].Root != int32(i) {
			continue
		}
		at := int32(i)
		if d, ok := defined[at]; ok {
			at = d
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[at].Off))
		if err != nil {
			return err
		}
		// The kernel's compiletime_assert declares a function in the midst of another one.
		if !live[i] {
			only, err := isDeclaration(e)
			if err != nil {
				return err
			}
			if only {
				continue
			}
		}
		x, err := t.declared(u, e)
		if err != nil {
			return err
		}
		t.byRoot[i], t.known[i] = x, true
		t.add(x)
	}
	if err := t.prepareOthers(u); err != nil {
		return err
	}
	for i := range t.lines {
		t.lines[i] = radix.Sort(t.lines[i], func(x *Text) uint64 { return uint64(x.Line)<<32 | uint64(x.Column) })
	}
	t.read = true
	return nil
}

// prepareOthers reads the declarations of the functions that have their names in other units, as with link-time optimization.
func (t *texts) prepareOthers(u *Unit) error {
	type reference struct {
		form dw.Form
		to   uint64
	}
	known := make(map[reference]Text)
	for i := range u.Recs {
		if u.Recs[i].Root >= 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(u.Recs[i].Off))
		if err != nil {
			return err
		}
		var of reference
		own := false
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrAbstractOrigin {
				of = reference{v.Form, v.U}
			}
			own = own || a == dw.AttrDeclLine
		})
		if err != nil {
			return err
		}
		x, ok := known[of]
		if own || !ok {
			if x, err = t.declared(u, e); err != nil {
				return err
			}
			if !own && of.form != 0 {
				known[of] = x
			}
			t.add(x)
		}
		t.byRoot[i], t.known[i] = x, true
	}
	return nil
}

// add adds a text to those of its file.
func (t *texts) add(x Text) {
	if x.File == 0 {
		return
	}
	for int(x.File) >= len(t.lines) {
		t.lines = append(t.lines, nil)
	}
	t.lines[x.File] = append(t.lines[x.File], x)
}

// definitions returns the records that define members of C++ classes outside of the class, by those that declare them there: the text of
// such a function is where it is defined.
func definitions(u *Unit) (map[int32]int32, error) {
	if !dw.IsCPlusPlus(u.Lang) {
		return nil, nil
	}
	out := make(map[int32]int32)
	for i := range u.Recs {
		r := &u.Recs[i]
		if r.Root == int32(i) || r.Root < 0 || r.Flags&index.Inlined != 0 {
			continue
		}
		e, err := u.Entry(u.Off + uint64(r.Off))
		if err != nil {
			return nil, err
		}
		defines, line := false, uint64(0)
		err = e.Attrs(func(a dw.Attr, v dw.Value) {
			switch a {
			case dw.AttrSpecification:
				defines = true
			case dw.AttrDeclLine:
				line = v.U
			}
		})
		if err != nil {
			return nil, err
		}
		if defines && line != 0 {
			out[r.Root] = int32(i)
		}
	}
	return out, nil
}

// isDeclaration reports whether an entry only declares a function.
func isDeclaration(e dw.Entry) (only bool, err error) {
	if !e.Has(dw.AttrDeclaration) {
		return false, nil // as of nearly all
	}
	err = e.Attrs(func(a dw.Attr, v dw.Value) { only = only || a == dw.AttrDeclaration && v.U != 0 })
	return only, err
}

// Declared returns the text of the function that an entry describes.
func (t *texts) declared(u *Unit, e dw.Entry) (Text, error) {
	var file, line, column uint64
	filed, placed := false, false // placed: an entry before has said the line
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch {
		case a == dw.AttrDeclFile:
			file, filed = v.U, true
		case a == dw.AttrDeclLine && !placed:
			line = v.U
		case a == dw.AttrDeclColumn && !placed:
			column = v.U
		}
	}, func() bool {
		if placed = line != 0; !placed {
			file, column, filed = 0, 0, false // of an entry that does not say all
		}
		// The definition of a member of a class lacks the file, if that is the one of the declaration.
		return !placed || !filed
	})
	if err != nil || line == 0 {
		return Text{}, err
	}
	return Text{t.number(last.Unit, last.Unit == u.Unit.Unit, file), uint32(line), uint32(column)}, nil
}

// of returns the text of a record's function.
func (t *texts) of(u *Unit, rec int32, e dw.Entry) (Text, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.prepare(u); err != nil {
		return Text{}, err
	}
	root := u.Recs[rec].Root
	if root < 0 {
		root = rec
	}
	if t.known[root] {
		return t.byRoot[root], nil
	}
	// It is only declared in the unit, and has no code: which text a row is in must not depend on whether somebody asks for it.
	return t.declared(u, e)
}

// at returns the text that a row is in.
func (t *texts) at(u *Unit, r *dw.Row) Text {
	t.mu.Lock()
	defer t.mu.Unlock()
	file := t.number(u.Unit.Unit, true, uint64(r.File))
	if file == 0 || int(file) >= len(t.lines) {
		return Text{}
	}
	lines := t.lines[file]
	i := sort.Search(len(lines), func(i int) bool {
		return lines[i].Line > r.Line || lines[i].Line == r.Line && lines[i].Column > max(r.Column, 1)
	})
	if i == 0 {
		return Text{}
	}
	return lines[i-1]
}

// First returns the first line of a text, after its declaration, that has a row.
func (t *texts) first(u *Unit, rows []dw.Row, of Text) uint32 {
	t.mu.Lock()
	firsts := t.firsts
	t.mu.Unlock()
	if firsts == nil {
		firsts = make(map[Text]uint32)
		for i := range rows {
			r := &rows[i]
			if r.End || i > 0 && r.Line == rows[i-1].Line && r.File == rows[i-1].File {
				continue
			}
			at := t.at(u, r)
			if n, ok := firsts[at]; r.Line > at.Line && (!ok || r.Line < n) {
				firsts[at] = r.Line
			}
		}
		t.mu.Lock()
		t.firsts = firsts
		t.mu.Unlock()
	}
	return firsts[of]
}
