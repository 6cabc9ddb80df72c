package bpfobject

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// textSection is where functions are that programs call: loaders look for them nowhere else.
const textSection = ".text"

// Code is a program that calls the function that another one has become.
type Code struct {
	Section string
	Insns   []byte
	Call    int    // offset in Insns of the instruction that calls, in bytes
	Line    string // text of its source line
	// Loads are offsets of 64-bit immediate loads. Each has the offset of a byte of the variable TABLE_NAME, a table, and loads its
	// address.
	Loads []int
	Table string
}

// Replace makes the program of a name the function NAME_user, which code calls, the new program of that name. Tables that code refers to are
// added after it.
func (o *Object) Replace(name string, code *Code) error {
	number, err := o.program(name)
	if err != nil {
		return err
	}
	old, user := o.symbols[number].in, name+"_user"
	for _, taken := range []string{user, "sites_" + name, "image_" + name, "addresses_" + name} {
		if slices.ContainsFunc(o.symbols, func(s symbol) bool { return s.name == taken }) {
			return fmt.Errorf("the object has a symbol %s already", taken)
		}
	}
	id, ok := o.types.function(name)
	if !ok {
		return fmt.Errorf("%s: no type in the BTF", name)
	}
	text := o.section(textSection)
	if text == nil {
		text = newCode(textSection)
		o.sections = append(o.sections, text)
	}
	base := uint64(len(text.data))
	text.data = append(text.data, old.data...)
	for _, r := range old.rels {
		r.at += base
		text.rels = append(text.rels, r)
	}
	whole := o.sectionSymbol(old)
	for i := range o.symbols {
		if s := &o.symbols[i]; s.in == old && i != whole {
			s.in, s.value = text, s.value+base
		}
	}
	old.gone = true
	own := &o.symbols[number]
	own.name, own.info, own.other = user, elf.ST_INFO(elf.STB_LOCAL, elf.STT_FUNC), 0
	o.types.makeStatic(id, user)
	o.ext.move(old.name, textSection, base)

	to := o.section(code.Section)
	if to == nil {
		to = newCode(code.Section)
		o.sections = append(o.sections, to)
	}
	at := uint64(len(to.data))
	to.data = append(to.data, code.Insns...)
	call := to.data[at+uint64(code.Call):]
	call[1] = 1 << 4 // BPF_PSEUDO_CALL
	le.PutUint32(call[4:], uint32(int32(base/8)-1))
	to.rels = append(to.rels, relocation{at: at + uint64(code.Call), symbol: o.sectionSymbol(text), kind: relCall})
	for _, load := range code.Loads {
		to.rels = append(to.rels, relocation{at: at + uint64(load), kind: relLoad, table: code.Table + "_" + name})
	}
	o.symbols = append(o.symbols, symbol{
		name: name, info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), in: to, value: at, size: uint64(len(code.Insns)),
	})
	o.ext.describe(code.Section, at, o.types.entry(name), o.types.addText("prologue"), o.types.addText(code.Line))
	return nil
}

func newCode(name string) *section {
	return &section{name: name, kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, align: 8}
}

// program returns the number of a program's symbol, which must be alone in its section.
func (o *Object) program(name string) (number int, err error) {
	number = slices.IndexFunc(o.symbols, func(s symbol) bool { return s.name == name && s.kind() == elf.STT_FUNC && s.in != nil })
	if number < 0 {
		return 0, fmt.Errorf("no program %s", name)
	}
	own := &o.symbols[number]
	if own.in.name == textSection {
		return 0, fmt.Errorf("%s is no program, but a function", name)
	}
	if own.value != 0 || own.size != uint64(len(own.in.data)) || len(own.in.data)%8 != 0 {
		return 0, fmt.Errorf("section %q has more than the program %s: static functions must not be there", own.in.name, name)
	}
	for i := range o.symbols {
		if s := &o.symbols[i]; s.in == own.in && s.kind() == elf.STT_FUNC && s != own {
			return 0, fmt.Errorf("section %q has the functions %s and %s: a definition has one program", own.in.name, name, s.name)
		}
	}
	return number, nil
}

// Field is a member of a table's entries: a number of 4 or 8 bytes, or so many characters.
type Field struct {
	Name string
	Size uint32
	Text bool
}

// table is a variable of tableSection.
type table struct {
	name    string
	at      uint32
	count   uint32
	entry   uint32
	members []Field
}

// tableSection is read by programs and loaders, and not changed.
const tableSection = ".rodata.sites"

// Table adds a variable: an array of structures with some members. It is constant, and in the map .rodata.sites.
func (o *Object) Table(name string, members []Field, data []byte) {
	s := o.section(tableSection)
	if s == nil {
		s = &section{name: tableSection, kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, align: 8}
		o.sections = append(o.sections, s)
	}
	entry := uint32(0)
	for _, m := range members {
		entry += m.Size
	}
	at := uint32(len(s.data))
	s.data = append(s.data, data...)
	s.data = append(s.data, make([]byte, (8-len(s.data)%8)%8)...)
	o.tables = append(o.tables, table{name, at, uint32(len(data)) / entry, entry, members})
	for _, x := range o.sections {
		for i := range x.rels {
			if r := &x.rels[i]; r.table == name {
				r.symbol, r.table = len(o.symbols), ""
			}
		}
	}
	o.symbols = append(o.symbols, symbol{
		name: name, info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), in: s, value: uint64(at), size: uint64(len(data)),
	})
}

// writeTypes writes .BTF and .BTF.ext. The structures have no name: libbpf's skeletons declare only those where they are used.
func (o *Object) writeTypes() error {
	t := o.types
	if len(o.tables) > 0 {
		long := t.add("unsigned long long", kindInt, 0, 8, 64)
		word := t.add("unsigned int", kindInt, 0, 4, 32)
		char := t.add("char", kindInt, 0, 1, 8)
		var vars []uint32
		size := uint32(0)
		for _, x := range o.tables {
			var words []uint32
			at := uint32(0)
			for _, m := range x.members {
				of := word
				switch {
				case m.Text:
					of = t.add("", kindArray, 0, 0, char, word, m.Size)
				case m.Size == 8:
					of = long
				}
				words = append(words, t.addText(m.Name), of, 8*at)
				at += m.Size
			}
			entry := t.add("", kindStruct, uint32(len(x.members)), append([]uint32{x.entry}, words...)...)
			array := t.add("", kindArray, 0, 0, entry, word, x.count)
			constant := t.add("", kindConst, 0, array)
			v := t.add(x.name, kindVar, 0, constant, linkGlobal)
			vars = append(vars, v, x.at, x.count*x.entry)
			size = x.at + (x.count*x.entry+7)/8*8
		}
		t.add(tableSection, kindDatasec, uint32(len(o.tables)), append([]uint32{size}, vars...)...)
		o.tables = nil
	}
	ext := o.ext.bytes(t) // adds strings
	t.in.data, o.ext.in.data = t.bytes(), ext
	return nil
}

// ErrNoDefinition is the error for an object file of which no program has a definition.
var ErrNoDefinition = errors.New("no program's section name is a definition, such as \"func=get_page page\"")

// Definitions returns the names of programs by the names of their sections, of sections for which is returns true.
func (o *Object) Definitions(is func(section string) bool) map[string]string {
	out := make(map[string]string)
	for i := range o.symbols {
		if s := &o.symbols[i]; s.in != nil && s.kind() == elf.STT_FUNC && !strings.HasPrefix(s.in.name, ".") && is(s.in.name) {
			out[s.name] = s.in.name
		}
	}
	return out
}
