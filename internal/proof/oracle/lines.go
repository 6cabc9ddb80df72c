package oracle

import (
	"fmt"
	"path"
	"slices"
)

// row is a statement of a unit's line table.
type row struct {
	addr uint64
	file string
	line int
}

// rows returns the names of a unit's files and its statements, by address. A table that is damaged has the statements
// before the damage.
func (r *Reader) rows(t *tree) ([]string, []row, error) {
	off, ok := t.root.Val(attrStmtList).(int64)
	if !ok {
		return nil, nil, nil
	}
	p := program{t: t, c: r.f.cursor(r.f.sections[".debug_line"], uint64(off))}
	if err := p.header(); err != nil {
		return nil, nil, fmt.Errorf("oracle: .debug_line at %#x: %w", off, err)
	}
	p.run()
	slices.SortStableFunc(p.rows, func(a, b row) int { return int(min(1, max(-1, int64(a.addr-b.addr)))) })
	return p.files, p.rows, nil
}

// program is a line number program (DWARF 5 section 6.2).
type program struct {
	t       *tree
	c       cursor
	version int
	files   []string

	wide             int // bytes of an offset
	minimum, most    uint64
	isStmt           bool // at the beginning
	lineBase         int64
	lineRange, first uint64
	lengths          []uint64 // of standard opcodes
	rows             []row
}

func (p *program) header() error {
	c := &p.c
	p.wide = 4
	n := c.uint(4)
	if n == 0xffffffff {
		p.wide, n = 8, c.uint(8)
	}
	if c.bad || n > uint64(len(c.d))-c.p {
		return fmt.Errorf("length %#x", n)
	}
	c.d = c.d[:c.p+n]
	if p.version = int(c.uint(2)); p.version < 2 || p.version > 5 {
		return fmt.Errorf("version %d", p.version)
	}
	if p.version >= 5 {
		c.uint(2) // sizes of an address and of a selector
	}
	n = c.uint(p.wide)
	start := c.p + n
	p.minimum, p.most = c.uint(1), 1
	if p.version >= 4 {
		p.most = max(c.uint(1), 1)
	}
	p.isStmt = c.uint(1) != 0
	p.lineBase, p.lineRange, p.first = c.sint(1), c.uint(1), c.uint(1)
	if p.lineRange == 0 || p.first == 0 {
		return fmt.Errorf("a line range of %d, and special opcodes from %d on", p.lineRange, p.first)
	}
	for range p.first - 1 {
		p.lengths = append(p.lengths, c.uint(1))
	}
	var err error
	if p.version >= 5 {
		err = p.tables()
	} else {
		p.oldTables()
	}
	if err == nil && (c.bad || start > uint64(len(c.d))) {
		err = fmt.Errorf("the header runs out of the section")
	}
	c.p = start
	return err
}

// oldTables reads directories and files as they are before DWARF 5. Both count from 1: directory 0 is that of the
// compilation.
func (p *program) oldTables() {
	here, _ := p.t.root.Val(attrCompDir).(string)
	directories := []string{here}
	for name := p.c.text(); name != ""; name = p.c.text() {
		directories = append(directories, joined(here, name))
	}
	p.files = []string{""}
	for name := p.c.text(); name != ""; name = p.c.text() {
		p.addFile(directories, name)
	}
}

// addFile reads what follows the name of a file.
func (p *program) addFile(directories []string, name string) {
	dir := p.c.uleb()
	p.c.uleb() // time
	p.c.uleb() // length
	if dir < uint64(len(directories)) {
		name = joined(directories[dir], name)
	}
	p.files = append(p.files, name)
}

// tables reads directories and files of DWARF 5. Directory 0 is that of the compilation.
func (p *program) tables() error {
	var directories []string
	err := p.table(func(name string, _ uint64) {
		if len(directories) > 0 {
			name = joined(directories[0], name)
		}
		directories = append(directories, name)
	})
	if err != nil {
		return err
	}
	return p.table(func(name string, dir uint64) {
		if dir < uint64(len(directories)) {
			name = joined(directories[dir], name)
		}
		p.files = append(p.files, name)
	})
}

// table reads one of the tables (DWARF 5 section 6.2.4.1).
func (p *program) table(add func(name string, dir uint64)) error {
	const contentPath, contentDirectory = 1, 2
	c := &p.c
	formats := make([][2]uint64, c.uint(1))
	for i := range formats {
		formats[i] = [2]uint64{c.uleb(), c.uleb()}
	}
	of := *p.t // the table has an offset size of its own
	of.Dwarf64 = p.wide == 8
	for n := c.uleb(); n > 0 && !c.bad; n-- {
		var name string
		var dir uint64
		for _, f := range formats {
			val, _, err := of.value(c, form(f[1]), 0)
			if i, ok := val.(stringIndex); ok && err == nil {
				val, err = p.t.string(uint64(i))
			}
			if err != nil {
				return err
			}
			switch v := val.(type) {
			case string:
				if f[0] == contentPath {
					name = v
				}
			case int64:
				if f[0] == contentDirectory {
					dir = uint64(v)
				}
			}
		}
		if len(formats) == 0 {
			return fmt.Errorf("%d names without a format", n)
		}
		add(name, dir)
	}
	return nil
}

func joined(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// run runs the program (DWARF 5 section 6.2.5).
func (p *program) run() {
	type state struct {
		addr, op, file uint64
		line           int64
		isStmt         bool
	}
	initial := state{file: 1, line: 1, isStmt: p.isStmt}
	s := initial
	advance := func(n uint64) {
		s.op += n
		s.addr += p.minimum * (s.op / p.most)
		s.op %= p.most
	}
	emit := func() {
		if s.isStmt && s.file < uint64(len(p.files)) && p.files[s.file] != "" {
			p.rows = append(p.rows, row{s.addr, p.files[s.file], int(s.line)})
		}
	}
	c := &p.c
	for c.p < uint64(len(c.d)) && !c.bad {
		op := c.uint(1)
		if op >= p.first {
			op -= p.first
			advance(op / p.lineRange)
			s.line += p.lineBase + int64(op%p.lineRange)
			emit()
			continue
		}
		switch op {
		case 0: // extended
			n := c.uleb()
			end := c.p + n
			if n == 0 || c.bad || end < c.p || end > uint64(len(c.d)) {
				return
			}
			switch c.uint(1) {
			case 1: // end_sequence: no statement
				s = initial
			case 2: // set_address
				s.addr, s.op = c.uint(int(min(n-1, 8))), 0
			case 3: // define_file
				p.addFile(nil, c.text())
			}
			c.p = end
		case 1: // copy
			emit()
		case 2: // advance_pc
			advance(c.uleb())
		case 3: // advance_line
			s.line += c.sleb()
		case 4: // set_file
			s.file = c.uleb()
		case 6: // negate_stmt
			s.isStmt = !s.isStmt
		case 8: // const_add_pc
			advance((255 - p.first) / p.lineRange)
		case 9: // fixed_advance_pc
			s.addr, s.op = s.addr+c.uint(2), 0
		default: // set_column, set_basic_block and others, which say nothing about statements here
			for range p.lengths[op-1] {
				c.uleb()
			}
		}
	}
}
