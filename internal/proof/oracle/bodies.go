package oracle

import (
	"slices"
	"sort"
)

// Function is an out-of-line function and what is inlined into it.
type Function struct {
	Name   string
	Entry  uint64
	Ranges [][2]uint64
	Bodies []Body

	last map[uint64]row // statement at an address
}

// Body is an inlined instance.
type Body struct {
	DIE        uint64
	Function   string
	Statements []uint64 // of its own text, or of what is inlined into it

	file   string // of its own text
	first  int
	ranges [][2]uint64
	inner  int // how many bodies after it are inside
}

// Functions reads the functions of a unit. noReturn gets the entries of those that say that
// they do not return.
func (r *Reader) Functions(u Unit, noReturn map[uint64]bool) ([]Function, error) {
	r.trees = nil
	if u.Type {
		return nil, nil
	}
	t, err := r.tree(u)
	if err != nil {
		return nil, err
	}
	texts := make(map[string][]int) // lines where functions are declared, by file
	files, rows, err := r.rows(t)
	if err != nil {
		return nil, err
	}
	var declared func(n *node)
	declared = func(n *node) {
		if n.Tag == tagSubprogram {
			if line, ok := n.Val(attrDeclLine).(int64); ok {
				if f := fileOf(files, n); f != "" {
					texts[f] = append(texts[f], int(line))
				}
			}
		}
		for _, c := range n.children {
			declared(c)
		}
	}
	declared(t.root)
	for f := range texts {
		slices.Sort(texts[f])
	}
	var out []Function
	for _, n := range t.root.children {
		if n.Tag != tagSubprogram {
			continue
		}
		entry, ok, err := r.start(n)
		if err != nil {
			return nil, err
		}
		if !ok || !r.f.executable(entry) {
			continue
		}
		if never, _, err := r.inherit(n, attrNoreturn); err == nil && never != nil {
			noReturn[entry] = true
		}
		f := Function{Entry: entry}
		if name, _, err := r.inherit(n, attrName); err == nil && name != nil {
			f.Name, _ = name.Val.(string)
		}
		if f.Ranges, err = r.ranges(n); err != nil {
			return nil, err
		}
		if err := r.bodies(n, &f, files, rows, texts); err != nil {
			return nil, err
		}
		f.statements(rows, texts)
		f.last = lastAt(rows, f.Ranges)
		out = append(out, f)
	}
	return out, nil
}

// lastAt returns the last statement at each address of a function.
func lastAt(rows []row, ranges [][2]uint64) map[uint64]row {
	out := make(map[uint64]row)
	for _, r := range ranges {
		for i := sort.Search(len(rows), func(i int) bool { return rows[i].addr >= r[0] }); i < len(rows) && rows[i].addr < r[1]; i++ {
			out[rows[i].addr] = rows[i]
		}
	}
	return out
}

func fileOf(files []string, n *node) string {
	if i, ok := n.Val(attrDeclFile).(int64); ok && i >= 0 && int(i) < len(files) {
		return files[i]
	}
	return ""
}

// bodies adds what is inlined into an entry.
func (r *Reader) bodies(n *node, f *Function, files []string, rows []row, texts map[string][]int) error {
	for _, c := range n.children {
		if c.Tag == tagInlinedSubroutine {
			ranges, err := r.ranges(c)
			if err != nil {
				return err
			}
			b := Body{DIE: uint64(c.Offset), ranges: ranges}
			me := len(f.Bodies)
			if name, _, err := r.inherit(c, attrName); err == nil && name != nil {
				b.Function, _ = name.Val.(string)
			}
			decl, at, err := r.inherit(c, attrDeclLine)
			if err != nil {
				return err
			}
			if decl != nil && at.unit == c.unit {
				first, _ := decl.Val.(int64)
				b.file, b.first = fileOf(files, at), int(first)
			}
			f.Bodies = append(f.Bodies, b)
			if err := r.bodies(c, f, files, rows, texts); err != nil {
				return err
			}
			f.Bodies[me].inner = len(f.Bodies) - me - 1
		}
		if c.Tag == tagLexDwarfBlock {
			if err := r.bodies(c, f, files, rows, texts); err != nil {
				return err
			}
		}
	}
	return nil
}

// statements finds the statements of the function's bodies: rows inside their ranges that are in
// the body's own text, from the line that declares the function to the next function of the
// file. A row where a range begins counts if no other body of the same text begins or ends there.
func (f *Function) statements(rows []row, texts map[string][]int) {
	type edge struct {
		file  string
		first int
		addr  uint64
	}
	edges := make(map[edge]int)
	for i := range f.Bodies {
		b := &f.Bodies[i]
		own := make(map[uint64]bool)
		for _, r := range b.ranges {
			own[r[0]], own[r[1]] = true, true
		}
		for a := range own {
			edges[edge{b.file, b.first, a}]++
		}
	}
	for i := range f.Bodies {
		b := &f.Bodies[i]
		if b.file == "" {
			continue
		}
		lines := texts[b.file]
		next := 1 << 30
		if i := sort.SearchInts(lines, b.first+1); i < len(lines) {
			next = lines[i]
		}
		for _, r := range b.ranges {
			for i := sort.Search(len(rows), func(i int) bool { return rows[i].addr >= r[0] }); i < len(rows) && rows[i].addr < r[1]; i++ {
				at := rows[i].addr
				if at == r[0] && edges[edge{b.file, b.first, at}] > 1 {
					continue
				}
				if l := rows[i].line; rows[i].file == b.file && l >= b.first && l < next {
					b.Statements = append(b.Statements, at)
				}
			}
		}
	}
	for i := range f.Bodies {
		b := &f.Bodies[i]
		for _, in := range f.Bodies[i+1 : i+1+b.inner] {
			b.Statements = append(b.Statements, in.Statements...)
		}
		slices.Sort(b.Statements)
		b.Statements = slices.Compact(b.Statements)
	}
}
