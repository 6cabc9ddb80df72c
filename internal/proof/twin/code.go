package twin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/qualify"
)

// position is a line of a source file. Line 0 is any.
type position struct {
	file string // without folders
	line int
}

// fits reports whether two positions can be of one call, which compilers may say is so many lines from where others say.
func (p position) fits(q position, near int) bool {
	return p.line == 0 || q.line == 0 || p.file == q.file && max(p.line-q.line, q.line-p.line) <= near
}

// place is where a function is called, or its body is inlined: the position of the call, and, where the function that calls is
// inlined itself, that of the call of that one, and so on.
type place []position

// code is what a program's instructions say, read with other tools than the library.
type code struct {
	shapes map[string]string // a function's instructions without addresses, by its name
	calls  map[uint64]string // names of functions that are called directly, by the address after the call
	places map[string][]place
	near   int             // how many lines from where A has a call it can be
	packed map[string]bool // symbols of functions that compute several numbers with one instruction
}

var (
	header      = regexp.MustCompile(`^[0-9a-f]+ <([^>]+)>:$`)
	instruction = regexp.MustCompile(`^ *([0-9a-f]+):\t(.*)$`)
	transfer    = regexp.MustCompile(`^(?:[a-z]+ )*(?:call|jmp|j[a-z]+) +[0-9a-f]+ <([^+>]+)>$`)
	arithmetic  = regexp.MustCompile(`^v?(?:p(?:add|sub|mul|madd|max|min|sll|srl|sra|cmp)[a-z]+|(?:add|sub|mul|div|max|min)p[sd]) `)
	address     = regexp.MustCompile(`(?:-?0x)?[0-9a-f]+(?:\(%rip\)| <)`)
)

// nameOf is the name of the function that a symbol is of, as QualifiedName returns it. GCC adds to the symbol what it made of the function, as in "f.part.0".
func nameOf(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, ".")
	return cmp.Or(qualify.Symbol(symbol), symbol)
}

// readCode reads the instructions and the lines of a program.
func readCode(ctx context.Context, path string) (*code, error) {
	out, err := exec.CommandContext(ctx, "objdump", "-d", "--no-show-raw-insn", "-j", ".text", path).Output()
	if err != nil {
		return nil, err
	}
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	c := &code{shapes: make(map[string]string), calls: make(map[uint64]string), places: make(map[string][]place), packed: make(map[string]bool)}
	var own, called string
	var shape strings.Builder
	finish := func() {
		if own != "" {
			c.shapes[own] = shape.String()
			shape.Reset()
		}
		called = ""
	}
	for text := bufio.NewScanner(bytes.NewReader(out)); text.Scan(); {
		if m := header.FindStringSubmatch(text.Text()); m != nil {
			finish()
			own = m[1]
			continue
		}
		m := instruction.FindStringSubmatch(text.Text())
		if m == nil {
			continue
		}
		addr, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			return nil, err
		}
		if called != "" {
			c.calls[addr] = called
			called = ""
		}
		// Its own calls of a function count too, as does a jump to its beginning, which they can become.
		if to := transfer.FindStringSubmatch(m[2]); to != nil {
			called = nameOf(to[1])
			c.places[called] = append(c.places[called], place{lines.at(addr)})
		}
		if arithmetic.MatchString(m[2]) {
			c.packed[own] = true
		}
		line := address.ReplaceAllStringFunc(m[2], func(s string) string { return s[len(s)-1:] })
		shape.WriteString(strings.ReplaceAll(line, "<"+own, "<") + "\n")
	}
	finish()
	return c, nil
}

// ofOthers is how many lines apart GCC and another compiler say that a call is, if it is written in several.
const ofOthers = 2

// inline adds the places of the bodies that are inlined.
func (c *code) inline(t *trace) {
	for f, of := range t.functions {
		for _, s := range of.sites {
			if s.Inlined() {
				c.places[f.Name] = append(c.places[f.Name], s.called())
			}
		}
	}
}

// called is the place where an inlined body is called.
func (s *site) called() place {
	p := place{{filepath.Base(s.CallFile), s.CallLine}}
	for _, x := range s.Callers[:len(s.Callers)-1] {
		p = append(p, position{filepath.Base(x.CallFile), x.CallLine})
	}
	return p
}

// lineTable has the rows of a program's line table by address.
type lineTable []row

type row struct {
	addr uint64
	position
}

func readLines(path string) (rows lineTable, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := file.DWARF()
	if err != nil {
		return nil, err
	}
	units := data.Reader()
	for {
		unit, err := units.Next()
		if err != nil {
			return nil, err
		}
		if unit == nil {
			break
		}
		units.SkipChildren()
		if unit.Tag != dwarf.TagCompileUnit {
			continue
		}
		r, err := data.LineReader(unit)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		for {
			var e dwarf.LineEntry
			if err := r.Next(&e); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			x := row{addr: e.Address}
			if e.File != nil && !e.EndSequence {
				x.position = position{filepath.Base(e.File.Name), e.Line}
			}
			rows = append(rows, x)
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.addr, b.addr) })
	return rows, nil
}

// at returns the position of an instruction.
func (t lineTable) at(addr uint64) position {
	i, _ := slices.BinarySearchFunc(t, addr+1, func(x row, addr uint64) int { return cmp.Compare(x.addr, addr) })
	if i == 0 {
		return position{}
	}
	return t[i-1].position
}
