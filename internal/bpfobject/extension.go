package bpfobject

import (
	"errors"
	"fmt"
	"slices"
)

// extension is the section .BTF.ext: records about instructions, by section. Readers stop at the first group of a section, so that there is
// one for each.
type extension struct {
	in    *section
	parts [3]part // of functions, of lines, and of relocations by BTF
}

type part struct {
	record int // bytes of a record
	groups []group
}

// group is the records of one section. Each begins with the offset of the instruction, in bytes.
type group struct {
	section string
	records []byte
}

func readExtension(s *section, t *types) (*extension, error) {
	b := s.data
	if len(b) < 24 || le.Uint16(b) != 0xeb9f {
		return nil, errors.New("it does not begin as BTF does")
	}
	e := &extension{in: s}
	head := le.Uint32(b[4:])
	for i := range e.parts {
		if int(head) < 8+8*(i+1) || len(b) < 16+8*i {
			break
		}
		at, n := uint64(head)+uint64(le.Uint32(b[8+8*i:])), uint64(le.Uint32(b[12+8*i:]))
		if at+n > uint64(len(b)) {
			return nil, errors.New("it is cut off")
		}
		if err := e.parts[i].read(b[at:at+n], smallest[i], t); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// smallest are the bytes of a record of each part (struct bpf_func_info, bpf_line_info and bpf_core_relo of include/uapi/linux/bpf.h).
var smallest = [3]int{8, 16, 16}

func (p *part) read(b []byte, least int, t *types) error {
	if len(b) == 0 {
		return nil
	}
	if len(b) < 4 {
		return errors.New("it is cut off")
	}
	p.record = int(le.Uint32(b))
	if p.record < least || p.record > 1<<10 || p.record%4 != 0 {
		return fmt.Errorf("records of %d bytes", p.record)
	}
	for b = b[4:]; len(b) > 0; {
		if len(b) < 8 {
			return errors.New("a group is cut off")
		}
		name, n := t.text(le.Uint32(b)), uint64(le.Uint32(b[4:]))*uint64(p.record)
		if n > uint64(len(b)-8) {
			return errors.New("a group is cut off")
		}
		p.add(name, b[8:8+n])
		b = b[8+n:]
	}
	return nil
}

// add adds records to a section's.
func (p *part) add(section string, records []byte) {
	i := slices.IndexFunc(p.groups, func(g group) bool { return g.section == section })
	if i < 0 {
		i = len(p.groups)
		p.groups = append(p.groups, group{section: section})
	}
	p.groups[i].records = append(p.groups[i].records, records...)
}

// take removes a section's records, and returns them moved on by so many bytes.
func (p *part) take(section string, by uint64) []byte {
	var out []byte
	p.groups = slices.DeleteFunc(p.groups, func(g group) bool {
		if g.section != section {
			return false
		}
		out = append(out, g.records...)
		return true
	})
	for at := 0; at < len(out); at += p.record {
		le.PutUint32(out[at:], le.Uint32(out[at:])+uint32(by))
	}
	return out
}

// move makes the records of one section those of another, so many bytes on.
func (e *extension) move(from, to string, by uint64) {
	for i := range e.parts {
		p := &e.parts[i]
		if records := p.take(from, by); len(records) > 0 {
			p.add(to, records)
		}
	}
}

// describe adds what the kernel wants to know of a function at an offset: its type, and a line.
func (e *extension) describe(section string, at uint64, function, file, line uint32) {
	functions, lines := &e.parts[0], &e.parts[1]
	functions.record, lines.record = max(functions.record, smallest[0]), max(lines.record, smallest[1])
	record := func(size int, words ...uint32) []byte {
		b := make([]byte, 0, size)
		for _, w := range words {
			b = le.AppendUint32(b, w)
		}
		return b[:size]
	}
	functions.add(section, record(functions.record, uint32(at), function))
	lines.add(section, record(lines.record, uint32(at), file, line, 1<<10))
}

// bytes returns the section. The names of sections are added to the types' strings.
func (e *extension) bytes(t *types) []byte {
	out := make([]byte, 32)
	le.PutUint16(out, 0xeb9f)
	out[2] = 1
	le.PutUint32(out[4:], 32)
	for i := range e.parts {
		p, from := &e.parts[i], len(out)
		if len(p.groups) == 0 {
			le.PutUint32(out[8+8*i:], uint32(from-32))
			continue
		}
		out = le.AppendUint32(out, uint32(p.record))
		for _, g := range p.groups {
			out = le.AppendUint32(out, t.addText(g.section))
			out = le.AppendUint32(out, uint32(len(g.records)/p.record))
			out = append(out, g.records...)
		}
		le.PutUint32(out[8+8*i:], uint32(from-32))
		le.PutUint32(out[12+8*i:], uint32(len(out)-from))
	}
	return out
}
