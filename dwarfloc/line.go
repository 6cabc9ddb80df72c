package dwarfloc

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// The line table (DWARF 5 section 6.2) names the files that entries refer to, and
// the source line of every instruction. Headers are read for file names; the line
// program runs only when rows are asked for.

// lineTable is the line table of one unit.
type lineTable struct {
	compDir string
	dirs    []value    // by DWARF index
	files   []lineFile // by DWARF index: from 0 in DWARF 5, from 1 before
	rows    []lineRow  // in order of addresses, once they were read

	program     buf
	minInst     uint64
	maxOps      uint64
	defaultStmt bool
	lineBase    int64
	lineRange   uint64
	opcodeBase  uint8
	opLengths   []uint8
	off         uint64
}

type lineFile struct {
	name value // as it stands in the table: may be relative
	dir  uint64
	path string // as file returns it, once it was asked for
}

// lineRow is one row: the source position of the code from addr on.
type lineRow struct {
	addr        uint64
	line        uint32
	file        uint32
	view        uint32 // number of the row among those of its address
	stmt        bool
	prologueEnd bool
	end         bool // the first address behind a sequence
}

// table returns the unit's line table, read once.
func (u *unit) lineTable() (*lineTable, error) {
	u.lineOnce.Do(func() {
		u.lines = &lineTable{}
		if !u.hasStmtList {
			return
		}
		var t lineTable
		if u.lineErr = u.readLineTable(&t); u.lineErr == nil {
			u.lines = &t
		}
	})
	return u.lines, u.lineErr
}

// file returns a file's path: relative to the compilation directory when it is
// below it, as compilers were called.
func (u *unit) file(index uint64) string {
	t, err := u.lineTable()
	if err != nil || index >= uint64(len(t.files)) {
		return ""
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	f := &t.files[index]
	if f.path == "" {
		f.path = u.filePath(t, f)
	}
	return f.path
}

// filePath puts a file's path together.
func (u *unit) filePath(t *lineTable, f *lineFile) string {
	name := u.text(f.name)
	if !path.IsAbs(name) && f.dir < uint64(len(t.dirs)) {
		if dir := u.join(u.text(t.dirs[f.dir])); dir != "" {
			name = path.Join(dir, name)
		}
	}
	if rel, ok := strings.CutPrefix(name, t.compDir+"/"); ok && t.compDir != "" {
		name = rel
	}
	return name
}

const maxLineFiles = 1 << 20

// readLineTable reads the header with its tables into t, whose memory is used again.
func (u *unit) readLineTable(t *lineTable) error {
	img := u.img
	bad := func(what string) error { return img.errorf(".debug_line", u.stmtList, "%s", what) }
	b := buf{d: img.line, be: img.be}
	b.seek(u.stmtList)
	n, dwarf64 := b.unitLength()
	if b.bad || n > uint64(len(b.d)-b.p) {
		return bad("invalid line table length")
	}
	b.d = b.d[:b.p+int(n)]
	version := b.u16()
	if version < 2 || version > 5 {
		return img.errorf(".debug_line", u.stmtList, "unsupported line table version %d", version)
	}
	if version == 5 {
		b.u8() // address size
		b.u8() // segment selector size
	}
	headerLen := b.offset(dwarf64)
	if b.bad || headerLen > uint64(len(b.d)-b.p) {
		return bad("invalid header length")
	}
	*t = lineTable{compDir: u.compDir(), off: u.stmtList, maxOps: 1, dirs: t.dirs[:0], files: t.files[:0]}
	t.program = buf{d: b.d, p: b.p + int(headerLen), be: img.be}
	t.minInst = uint64(b.u8())
	if version >= 4 {
		t.maxOps = uint64(b.u8())
	}
	t.defaultStmt = b.u8() != 0
	t.lineBase = int64(int8(b.u8()))
	t.lineRange = uint64(b.u8())
	t.opcodeBase = b.u8()
	if t.opcodeBase > 0 {
		t.opLengths = b.bytes(uint64(t.opcodeBase) - 1)
	}
	if b.bad {
		return bad("the header is cut short")
	}
	if version == 5 {
		return u.readFilesV5(t, &b, dwarf64)
	}
	t.dirs = append(t.dirs, u.compDirValue)
	for len(t.dirs) < maxLineFiles {
		s := b.cstr()
		if b.bad {
			return bad("the directory table does not end")
		}
		if len(s) == 0 {
			break
		}
		t.dirs = append(t.dirs, blockValue(formString, s))
	}
	t.files = append(t.files, lineFile{name: u.nameValue})
	for len(t.files) < maxLineFiles {
		s := b.cstr()
		if len(s) == 0 && !b.bad {
			break
		}
		f := lineFile{name: blockValue(formString, s), dir: b.uleb()}
		b.uleb() // modification time
		b.uleb() // length
		if b.bad {
			return bad("the file table does not end")
		}
		t.files = append(t.files, f)
	}
	return nil
}

// join makes a directory of the table absolute.
func (u *unit) join(dir string) string {
	if path.IsAbs(dir) || u.compDir() == "" {
		return dir
	}
	return path.Join(u.compDir(), dir)
}

// readFilesV5 reads the directory and file tables of DWARF 5, which describe
// their own form.
func (u *unit) readFilesV5(t *lineTable, b *buf, dwarf64 bool) error {
	bad := func(what string) error { return u.img.errorf(".debug_line", t.off, "%s", what) }
	// Strings of the table have the table's own offset size.
	reader := unit{img: u.img, version: 5, addrSize: u.addrSize, dwarf64: dwarf64}
	table := func(take func(f lineFile)) error {
		type format struct{ kind, form uint64 }
		formats := make([]format, b.u8())
		for i := range formats {
			formats[i] = format{b.uleb(), b.uleb()}
		}
		count := b.uleb()
		// No format is so short that an entry takes no byte, whatever the count says.
		if b.bad || count > maxLineFiles || count > uint64(len(b.d)-b.p) {
			return bad("invalid directory or file table")
		}
		for range count {
			var file lineFile
			for _, f := range formats {
				v := reader.readForm(b, form(f.form))
				switch f.kind {
				case 1: // DW_LNCT_path
					file.name = v
				case 2: // DW_LNCT_directory_index
					file.dir = v.u
				}
			}
			if b.bad {
				return bad("the directory or file table is cut short or has an unknown form")
			}
			take(file)
		}
		return nil
	}
	if err := table(func(f lineFile) { t.dirs = append(t.dirs, f.name) }); err != nil {
		return err
	}
	return table(func(f lineFile) { t.files = append(t.files, f) })
}

// maxLineRows bounds a line program; the longest of a kernel has some 100,000.
const maxLineRows = 1 << 24

// rowsOf runs the unit's line program.
func (u *unit) rowsOf() ([]lineRow, error) {
	t, err := u.lineTable()
	if err != nil || t.program.d == nil {
		return nil, err
	}
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	if t.rows == nil {
		rows := []lineRow{}
		if err := u.eachRow(t, func(r *lineRow) { rows = append(rows, *r) }); err != nil {
			return nil, err
		}
		slices.SortStableFunc(rows, func(a, b lineRow) int {
			c := cmp.Compare(a.addr, b.addr)
			if c == 0 && a.end != b.end {
				// One sequence ends where the next begins.
				if a.end {
					return -1
				}
				return 1
			}
			return c
		})
		t.rows = rows
	}
	return t.rows, nil
}

// forgetRows gives the memory of the rows back: 80 MB after a line of a frequent header. The
// next question reads them again.
func (u *unit) forgetRows() {
	u.rowsMu.Lock()
	defer u.rowsMu.Unlock()
	u.lines.rows = nil
}

// eachRow runs the line program and calls f for each row, in the program's order. It
// counts views as GCC's and binutils' assembler does: from 0 at each new address. (A
// DW_LNS_fixed_advance_pc that the assembler cannot compute keeps the count, as
// readelf has it.)
func (u *unit) eachRow(t *lineTable, f func(*lineRow)) error {
	bad := func(what string) error { return u.img.errorf(".debug_line", t.off, "%s", what) }
	if t.lineRange == 0 || t.opcodeBase == 0 {
		return bad("invalid line program header")
	}
	count := 0
	b := t.program
	var r lineRow
	var opIndex uint64
	line := int64(1)
	reset := func() {
		r = lineRow{file: 1, stmt: t.defaultStmt}
		line, opIndex = 1, 0
	}
	advance := func(n uint64) {
		if t.maxOps > 1 {
			n, opIndex = (opIndex+n)/t.maxOps, (opIndex+n)%t.maxOps
		}
		if n *= t.minInst; n != 0 {
			r.addr += n
			r.view = 0
		}
	}
	emit := func() {
		r.line = uint32(max(line, 0))
		f(&r)
		count++
		r.view++
		r.prologueEnd = false
	}
	reset()
	for b.p < len(b.d) {
		if count > maxLineRows {
			return bad("the line program does not end")
		}
		c := b.u8()
		if c >= t.opcodeBase {
			c -= t.opcodeBase
			advance(uint64(c) / t.lineRange)
			line += t.lineBase + int64(uint64(c)%t.lineRange)
			emit()
			continue
		}
		switch c {
		case 0:
			n := b.uleb()
			if n == 0 || n > uint64(len(b.d)-b.p) {
				return bad("invalid extended opcode")
			}
			next := b.p + int(n)
			switch b.u8() {
			case 1: // DW_LNE_end_sequence
				r.end = true
				emit()
				reset()
			case 2: // DW_LNE_set_address
				r.addr, r.view, opIndex = b.uint(int(min(n-1, 8))), 0, 0
			}
			b.p = next
		case 1: // DW_LNS_copy
			emit()
		case 2: // DW_LNS_advance_pc
			advance(b.uleb())
		case 3: // DW_LNS_advance_line
			line += b.sleb()
		case 4: // DW_LNS_set_file
			r.file = uint32(b.uleb())
		case 6: // DW_LNS_negate_stmt
			r.stmt = !r.stmt
		case 8: // DW_LNS_const_add_pc
			advance(uint64(255-t.opcodeBase) / t.lineRange)
		case 9: // DW_LNS_fixed_advance_pc
			r.addr, opIndex = r.addr+uint64(b.u16()), 0
		case 10: // DW_LNS_set_prologue_end
			r.prologueEnd = true
		default: // set_column, set_basic_block, set_epilogue_begin, set_isa, unknown ones
			for range t.opLengths[c-1] {
				b.uleb()
			}
		}
		if b.bad {
			return bad("the line program is cut short")
		}
	}
	return nil
}

// prologueEnd returns the first address behind a function's prologue: where the
// line table marks it (clang), else where the function's second row with another
// address begins (GCC, which emits one row for the opening brace and one for the
// first statement; GDB and perf go by it as well).
func (u *unit) prologueEnd(lo, hi uint64) (uint64, bool, error) {
	rows, err := u.rowsOf()
	if err != nil {
		return 0, false, err
	}
	i, _ := slices.BinarySearchFunc(rows, lo, func(r lineRow, a uint64) int { return cmp.Compare(r.addr, a) })
	second := uint64(0)
	for ; i < len(rows) && rows[i].addr < hi; i++ {
		r := rows[i]
		switch {
		case r.end:
			continue
		case r.prologueEnd:
			return r.addr, true, nil
		case r.stmt && r.addr > lo && second == 0:
			second = r.addr
		}
	}
	return second, second != 0, nil
}
