package dw

import (
	"cmp"
	"math"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// The line table (DWARF 5 section 6.2) names the files that entries refer to, and
// the source line of every instruction. Headers are read for file names; the line
// program runs only when rows are asked for.

// LineTable is the line table of one unit.
type LineTable struct {
	compDir string
	version uint16
	dwarf64 bool  // its offsets have 8 bytes, whatever the unit's have
	own     Value // before DWARF 5 the file with index 0
	dirs    lineNames
	files   lineNames         // from 0 in DWARF 5, from 1 before
	paths   map[uint64]string // those that File has returned
	rows    []Row             // by address, once they have been read
	some    []Row             // likewise, those in the ranges wanted
	wanted  []Range
	// unforeseen is how many more ranges RowsIn may add to them.
	unforeseen int8

	program     bin.Reader
	minInst     uint64
	maxOps      uint64
	defaultStmt bool
	lineBase    int64
	lineRange   uint64
	opcodeBase  uint8
	opLengths   []uint8
	off         uint64
}

// lineNames are the names of directories or files. They are checked when the table is read, and decoded when they are asked for: a unit
// of a kernel has 140 files, and most questions ask for one or two.
type lineNames struct {
	format uint32   // where the form of names is described, in DWARF 5
	at     []uint32 // by DWARF index: where a name is. Both are bytes from the table's beginning; 0 stands for the unit's own
}

// lineName is the name of a directory or a file as a table has it: it may be relative, to a directory with an index.
type lineName struct {
	name Value
	dir  uint64
}

// Row is one row: the source position of the code from the link-time address Addr on.
type Row struct {
	Addr        uint64
	Line        uint32
	Column      uint32
	File        uint32
	View        uint32 // number of the row among those with its address, from 0
	Stmt        bool
	PrologueEnd bool
	End         bool // the first address after a sequence
}

// SamePlace reports whether two rows have one place in the source.
func (r *Row) SamePlace(x *Row) bool {
	return r.File == x.File && r.Line == x.Line && r.Column == x.Column
}

// lineTable returns the unit's line table, which it reads once.
func (u *Unit) lineTable() (*LineTable, error) {
	l := u.lines.Load()
	if l == nil {
		u.lineMu.Lock()
		defer u.lineMu.Unlock()
		if l = u.lines.Load(); l == nil {
			l = new(lines)
			if u.HasStmtList {
				if l.err = u.ReadLineTable(&l.LineTable); l.err != nil {
					l.LineTable = LineTable{}
				}
			}
			u.lines.Store(l)
		}
	}
	return &l.LineTable, l.err
}

// lines is a unit's line table, or why it cannot be read.
type lines struct {
	LineTable
	err error
}

// File returns the path of the file with an index in the line table. It is relative
// if the file is below the compilation directory.
func (u *Unit) File(index uint64) string {
	t, err := u.lineTable()
	if err != nil || index >= uint64(t.Files()) {
		return ""
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	p, known := t.paths[index]
	if !known {
		if t.paths == nil {
			t.paths = make(map[uint64]string)
		}
		p = u.FilePath(t, int(index))
		t.paths[index] = p
	}
	return p
}

// Files returns how many files a table has: their indices are less.
func (t *LineTable) Files() int { return len(t.files.at) }

// FileName returns the name of a file as the table has it.
func (u *Unit) FileName(t *LineTable, index int) Value {
	if t.files.at[index] == 0 {
		return t.own
	}
	return u.Lines().lineName(t, &t.files, index, true).name
}

// FilePath joins the parts of a file's path.
func (u *Unit) FilePath(t *LineTable, index int) string {
	if u = u.Lines(); t.files.at[index] == 0 {
		return u.filePath(t, lineName{name: t.own})
	}
	return u.filePath(t, u.lineName(t, &t.files, index, true))
}

func (u *Unit) filePath(t *LineTable, f lineName) string {
	name := u.Text(f.name)
	if !path.IsAbs(name) && f.dir < uint64(len(t.dirs.at)) {
		dir := u.compDirValue
		if t.dirs.at[f.dir] != 0 {
			dir = u.lineName(t, &t.dirs, int(f.dir), false).name
		}
		if dir := u.join(u.Text(dir)); dir != "" {
			name = path.Join(dir, name)
		}
	}
	if rel, ok := strings.CutPrefix(name, t.compDir+"/"); ok && t.compDir != "" {
		name = rel
	}
	return name
}

// Lines returns the unit that has the line table, whose values it reads: of a split unit the skeleton.
func (u *Unit) Lines() *Unit {
	if u.Skeleton != nil {
		return u.Skeleton
	}
	return u
}

const (
	maxLineFiles = 1 << 20
	maxLineTable = 1<<32 - 1<<10 // bytes
)

// ReadLineTable reads the header and its tables into t, reusing t's memory.
func (u *Unit) ReadLineTable(t *LineTable) error {
	own := u.nameValue
	if lines := u.Lines(); lines != u {
		own = BlockValue(FormString, []byte(u.Name())) // which a skeleton does not have
		u = lines
	}
	d := u.Data
	bad := func(what string) error { return d.Errorf(".debug_line", u.StmtList, "%s", what) }
	b := bin.Reader{D: d.Line, BigEndian: d.BigEndian}
	b.Seek(u.StmtList)
	n, dwarf64 := b.UnitLength()
	if b.Bad || n > uint64(len(b.D)-b.P) || n > maxLineTable {
		return bad("invalid line table length")
	}
	b.D = b.D[:b.P+int(n)]
	version := b.U16()
	if version < 2 || version > 5 {
		return d.Errorf(".debug_line", u.StmtList, "unsupported line table version %d", version)
	}
	if version == 5 {
		b.U8() // address size
		b.U8() // segment selector size
	}
	headerLen := b.Offset(dwarf64)
	if b.Bad || headerLen > uint64(len(b.D)-b.P) {
		return bad("invalid header length")
	}
	*t = LineTable{
		compDir: u.CompDir(), off: u.StmtList, maxOps: 1, version: version, dwarf64: dwarf64, own: own,
		dirs: lineNames{at: t.dirs.at[:0]}, files: lineNames{at: t.files.at[:0]},
	}
	t.program = bin.Reader{D: b.D, P: b.P + int(headerLen), BigEndian: d.BigEndian}
	t.minInst = uint64(b.U8())
	if version >= 4 {
		t.maxOps = uint64(b.U8())
	}
	t.defaultStmt = b.U8() != 0
	t.lineBase = int64(int8(b.U8()))
	t.lineRange = uint64(b.U8())
	t.opcodeBase = b.U8()
	if t.opcodeBase > 0 {
		t.opLengths = b.Bytes(uint64(t.opcodeBase) - 1)
	}
	if b.Bad {
		return bad("the header is cut short")
	}
	if version == 5 {
		if err := u.readNamesV5(t, &b, &t.dirs); err != nil {
			return err
		}
		return u.readNamesV5(t, &b, &t.files)
	}
	t.dirs.at = append(t.dirs.at, 0)
	for len(t.dirs.at) < maxLineFiles {
		at := b.P
		s := b.CString()
		if b.Bad {
			return bad("the directory table does not end")
		}
		if len(s) == 0 {
			break
		}
		t.dirs.at = append(t.dirs.at, uint32(at-int(t.off)))
	}
	t.files.at = append(t.files.at, 0)
	for len(t.files.at) < maxLineFiles {
		at := b.P
		s := b.CString()
		if len(s) == 0 && !b.Bad {
			break
		}
		b.ULEB() // directory
		b.ULEB() // modification time
		b.ULEB() // length
		if b.Bad {
			return bad("the file table does not end")
		}
		t.files.at = append(t.files.at, uint32(at-int(t.off)))
	}
	return nil
}

// lineName decodes the name with an index. withDir is set for files, whose directory follows before DWARF 5.
func (u *Unit) lineName(t *LineTable, names *lineNames, index int, withDir bool) (out lineName) {
	b := bin.Reader{D: t.program.D, P: int(t.off) + int(names.at[index]), BigEndian: t.program.BigEndian}
	if t.version == 5 {
		forms := bin.Reader{D: b.D, P: int(t.off) + int(names.format), BigEndian: b.BigEndian}
		reader := u.lineReader(t)
		for range forms.U8() {
			out.take(forms.ULEB(), reader.ReadForm(&b, Form(forms.ULEB())))
		}
		return out
	}
	if out.name = BlockValue(FormString, b.CString()); withDir {
		out.dir = b.ULEB()
	}
	return out
}

// take takes a part of a name.
func (n *lineName) take(kind uint64, v Value) {
	switch kind {
	case 1: // DW_LNCT_path
		n.name = v
	case 2: // DW_LNCT_directory_index
		n.dir = v.U
	}
}

// lineReader returns what reads the forms of a table of DWARF 5: its offset size may differ from the unit's.
func (u *Unit) lineReader(t *LineTable) Unit {
	return Unit{Data: u.Data, Header: Header{Version: 5, AddrSize: u.AddrSize, Dwarf64: t.dwarf64}}
}

// join makes a directory of the table absolute.
func (u *Unit) join(dir string) string {
	if path.IsAbs(dir) || u.CompDir() == "" {
		return dir
	}
	return path.Join(u.CompDir(), dir)
}

// readNamesV5 passes over a table of names of DWARF 5, which describes its own form.
func (u *Unit) readNamesV5(t *LineTable, b *bin.Reader, names *lineNames) error {
	bad := func(what string) error { return u.Data.Errorf(".debug_line", t.off, "%s", what) }
	reader := u.lineReader(t)
	names.format = uint32(b.P - int(t.off))
	forms := make([]Form, b.U8())
	for i := range forms {
		b.ULEB() // what it is
		forms[i] = Form(b.ULEB())
	}
	count := b.ULEB()
	// An entry takes at least a byte, so a larger count is damage.
	if b.Bad || count > maxLineFiles || count > uint64(len(b.D)-b.P) {
		return bad("invalid directory or file table")
	}
	names.at = slices.Grow(names.at, int(count))
	for range count {
		names.at = append(names.at, uint32(b.P-int(t.off)))
		for _, f := range forms {
			reader.ReadForm(b, f)
		}
		if b.Bad {
			return bad("the directory or file table is cut short or has an unknown form")
		}
	}
	return nil
}

// Rows returns the rows of the unit's line program that EachCodeRow calls f for, sorted by
// address.
func (u *Unit) Rows() ([]Row, error) {
	t, err := u.lineTable()
	if err != nil || t.program.D == nil {
		return nil, err
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	if t.rows == nil {
		const perRow = 3 // bytes of a program, or more
		if t.rows, err = u.readRows(t, nil, make([]Row, 0, (len(t.program.D)-t.program.P)/perRow)); err != nil {
			t.rows = nil
			return nil, err
		}
	}
	return t.rows, nil
}

// HasRows reports whether rows of the unit are in memory.
func (u *Unit) HasRows() bool {
	t := u.lines.Load()
	if t == nil {
		return false
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	return t.rows != nil || t.some != nil
}

// RowsIn returns rows of Rows: all that are in a range of addresses, at least.
func (u *Unit) RowsIn(r Range) ([]Row, error) {
	t, err := u.lineTable()
	if err != nil || t.program.D == nil {
		return nil, err
	}
	u.rowsMu.Lock()
	in := slices.ContainsFunc(t.wanted, func(w Range) bool { return w.Lo <= r.Lo && r.Hi <= w.Hi })
	if t.rows != nil || !in && (t.unforeseen == 0 || len(t.wanted) == 0) {
		u.rowsMu.Unlock()
		return u.Rows()
	}
	defer u.rowsMu.Unlock()
	if !in {
		t.unforeseen--
		t.wanted, t.some = append(slices.Clip(t.wanted), r), nil
	}
	if t.some == nil {
		memory := rowsMemory.Get().(*[]Row)
		defer rowsMemory.Put(memory)
		rows, err := u.readRows(t, t.wanted, (*memory)[:0])
		if err != nil {
			return nil, err
		}
		*memory, t.some = rows, slices.Clone(rows)
	}
	return t.some, nil
}

// WantRows says in which ranges of addresses RowsIn is going to be asked for rows: only those are kept then. Of the units that get_page needs in Debian's 6.1 kernel, one row of eight is.
func (u *Unit) WantRows(ranges []Range) error {
	t, err := u.lineTable()
	if err != nil {
		return err
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	t.wanted, t.some, t.unforeseen = ranges, nil, maxUnforeseen
	return nil
}

// maxUnforeseen is for how many more ranges only their rows are read, each time anew: after that all are.
const maxUnforeseen = 2

// gapAround returns the addresses around one that are not in any of some ranges.
func gapAround(ranges []Range, addr uint64) Range {
	gap := Range{0, math.MaxUint64}
	for _, r := range ranges {
		if r.Hi <= addr {
			gap.Lo = max(gap.Lo, r.Hi)
		} else {
			gap.Hi = min(gap.Hi, r.Lo)
		}
	}
	return gap
}

// rowsMemory is where rows in ranges are read: how many there are is known then.
var rowsMemory = sync.Pool{New: func() any { return new([]Row) }}

// readRows adds to rows those in some ranges, or all if there are none.
func (u *Unit) readRows(t *LineTable, wanted []Range, rows []Row) ([]Row, error) {
	p := u.runLines(t)
	sorted, first := true, 0 // first of an address that rows ends with
	for before := 0; p.next(); {
		r := &p.row
		if p.count > before+1 {
			first = len(rows) // there were rows at other addresses
		}
		before = p.count
		if wanted != nil && !Covers(wanted, r.Addr) {
			p.gap, first = gapAround(wanted, r.Addr), len(rows)
			continue
		}
		switch {
		case first == len(rows):
		case rows[first].Addr != r.Addr:
			first = len(rows)
		case r.End:
			rows = rows[:first] // see EachCodeRow
		}
		rows = append(rows, *r)
		if n := len(rows); n > 1 {
			before := &rows[n-2]
			sorted = sorted && (before.Addr < r.Addr || before.Addr == r.Addr && (before.End == r.End || before.End))
		}
		if r.End {
			first = len(rows)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	if !sorted {
		sortRows(rows)
	}
	return rows, nil
}

// RowAt returns the row that an instruction at an address was compiled for, of sorted ones, or nil.
func RowAt(rows []Row, addr uint64) *Row {
	k := sort.Search(len(rows), func(k int) bool { return rows[k].Addr > addr })
	if k == 0 {
		return nil
	}
	return &rows[k-1]
}

// sortRows sorts rows by address. One sequence may end where the next begins.
func sortRows(rows []Row) {
	radix.Sort(rows, func(r *Row) uint64 { return r.Addr })
	for i := range rows {
		for k := i; k > 0 && rows[k].End && !rows[k-1].End && rows[k].Addr == rows[k-1].Addr; k-- {
			rows[k], rows[k-1] = rows[k-1], rows[k]
		}
	}
}

// ForgetRows frees the rows: 80 MB after a query for a line of a popular header. The
// next call of Rows reads them again.
func (u *Unit) ForgetRows() {
	l := u.lines.Load()
	if l == nil {
		return
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	l.rows, l.some, l.wanted = nil, nil, nil
}

// EachCodeRow is EachRow without the rows at the end of their own sequence, which stand for no
// instruction: GCC writes them for statements after a call, or an assembler statement, that does
// not return. What follows there is another function, or nothing.
func (u *Unit) EachCodeRow(t *LineTable, f func(*Row)) error {
	var last []Row // of one address
	flush := func() {
		for i := range last {
			f(&last[i])
		}
		last = last[:0]
	}
	p := u.runLines(t)
	for p.next() {
		r := &p.row
		switch {
		case len(last) == 0:
		case last[0].Addr != r.Addr:
			flush()
		case r.End:
			last = last[:0]
		}
		last = append(last, *r)
		if r.End {
			flush()
		}
	}
	flush()
	return p.err
}

// EachRow runs the line program and calls f for each row, in the program's order. It
// counts views from 0 at each new address, as GCC and the GNU assembler do. (Like
// readelf, it keeps counting after a DW_LNS_fixed_advance_pc.)
func (u *Unit) EachRow(t *LineTable, f func(*Row)) error {
	p := u.runLines(t)
	for p.next() {
		f(&p.row)
	}
	return p.err
}

// PrologueMark returns the link-time address that the line table marks as the end of a function's prologue, if it marks one.
func (u *Unit) PrologueMark(lo, hi uint64) (at uint64, ok bool, err error) {
	rows, err := u.Rows()
	if err != nil {
		return 0, false, err
	}
	i, _ := slices.BinarySearchFunc(rows, lo, func(r Row, a uint64) int { return cmp.Compare(r.Addr, a) })
	for ; i < len(rows) && rows[i].Addr < hi; i++ {
		if rows[i].PrologueEnd && !rows[i].End {
			return rows[i].Addr, true, nil
		}
	}
	return 0, false, nil
}

// PrologueEnd returns the first link-time address after a function's prologue: the
// one that the line table marks (clang), or else that of the function's second row
// with another address. (GCC emits one row for the opening brace and one for the
// first statement; GDB and perf use the same rule.)
func (u *Unit) PrologueEnd(lo, hi uint64, inPrologue func(*Row) bool) (uint64, bool, error) {
	rows, err := u.Rows()
	if err != nil {
		return 0, false, err
	}
	i, _ := slices.BinarySearchFunc(rows, lo, func(r Row, a uint64) int { return cmp.Compare(r.Addr, a) })
	second := uint64(0)
	for ; i < len(rows) && rows[i].Addr < hi; i++ {
		r := rows[i]
		switch {
		case r.End:
			continue
		case r.PrologueEnd:
			return r.Addr, true, nil
		case r.Stmt && r.Addr > lo && second == 0 && !inPrologue(&r):
			second = r.Addr
		}
	}
	return second, second != 0, nil
}
