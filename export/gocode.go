package export

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Go writes a Go file with the plan's prologues and with the sites of each. A prologue is a
// function that returns its instructions for an image that is loaded slide bytes after its
// link-time addresses. Put before a program they do what instances.Preprocess does.
//
// A plan with prologue.ReadCast is an error.
func Go(w io.Writer, p *plan.Plan) error {
	if err := checkReads(p); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "// Fetch prologues of %q.\n\npackage prologues\n\nimport \"github.com/cilium/ebpf/asm\"\n\n", cname.OneLine(p.Definition.String()))
	b.WriteString("// prologues are the instances: what stands before a program at the sites.\n")
	if p.Doubt == plan.DoubtKeep {
		b.WriteString("// Arguments that may not be what was passed have their bit of err, and are there: ")
		if p.Convention == prologue.ConventionRecord {
			b.WriteString("bit i of the last 8 bytes of the record says so.\n")
		} else {
			fmt.Fprintf(&b, "bit %d+i of err says so.\n", prologue.DoubtShift)
		}
	}
	b.WriteString("var prologues = []func(slide uint64) asm.Instructions{\n")
	for i := range p.Instances {
		fmt.Fprintf(&b, "\tprologue%d,\n", i)
	}
	if err := writeSites(&b, p); err != nil {
		return err
	}
	b.WriteString("}\n")
	for i := range p.Instances {
		in := &p.Instances[i]
		moves := make(map[int]bool)
		for _, at := range in.Prologue.Addrs {
			moves[at] = true
		}
		slide := "slide"
		if len(moves) == 0 {
			slide = "_"
		}
		fmt.Fprintf(&b, "\nfunc prologue%d(%s uint64) asm.Instructions {\n\treturn asm.Instructions{\n", i, slide)
		var lines commented
		for j := range in.Prologue.Insns {
			ins := &in.Prologue.Insns[j]
			comment := ""
			if src := ins.Source(); src != nil {
				comment = cname.OneLine(src.String())
			}
			lines.add("\t\t{"+strings.Join(literal(ins, moves[j]), ", ")+"},", comment)
		}
		lines.write(&b)
		b.WriteString("\t}\n}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// commented are lines of code, as gofmt writes them: comments that follow each other are in one column. Package go/format would be
// half a megabyte of the tool.
type commented []struct{ code, comment string }

func (c *commented) add(code, comment string) {
	*c = append(*c, struct{ code, comment string }{code, comment})
}

func (c commented) write(b *strings.Builder) {
	for len(c) > 0 {
		n, width := 0, 0
		for ; n < len(c) && c[n].comment != ""; n++ {
			width = max(width, utf8.RuneCountInString(c[n].code))
		}
		for _, l := range c[:n] {
			fmt.Fprintf(b, "%-*s // %s\n", width, l.code, l.comment)
		}
		if c = c[n:]; len(c) > 0 {
			b.WriteString(c[0].code + "\n")
			c = c[1:]
		}
	}
}

// writeSites writes where the sites are: for a program or a library also in the file, where uprobes are attached.
func writeSites(b *strings.Builder, p *plan.Plan) error {
	user := p.Target.UserSpace()
	if user {
		b.WriteString("}\n\n// sites are link-time addresses, offsets in the file, and which instance serves each.\nvar sites = []struct {\n\taddr, offset uint64\n\tinstance     int\n}{\n")
	} else {
		b.WriteString("}\n\n// sites are link-time addresses, and which instance serves each.\nvar sites = []struct {\n\taddr     uint64\n\tinstance int\n}{\n")
	}
	var lines commented
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Instance < 0 {
			continue
		}
		place := fmt.Sprintf("%#x", s.Addr)
		if user {
			offset, err := s.FileOffset()
			if err != nil {
				return err
			}
			place += fmt.Sprintf(", %#x", offset)
		}
		what := s.String()
		if s.Semaphore != 0 {
			offset, err := counterOffset(s)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(", while the counter at %#x in the file is not 0 (ref_ctr_offset)", offset)
		}
		lines.add(fmt.Sprintf("\t{%s, %d},", place, s.Instance), cname.OneLine(what))
	}
	lines.write(b)
	return nil
}

// literal returns an instruction's fields as in a composite literal.
func literal(ins *asm.Instruction, moves bool) []string {
	f := []string{fmt.Sprintf("OpCode: %#x", uint16(ins.OpCode))}
	if ins.Dst != 0 {
		f = append(f, fmt.Sprintf("Dst: asm.R%d", ins.Dst))
	}
	if ins.Src != 0 {
		f = append(f, fmt.Sprintf("Src: asm.R%d", ins.Src))
	}
	if ins.Offset != 0 {
		f = append(f, fmt.Sprintf("Offset: %d", ins.Offset))
	}
	switch {
	case moves:
		// The sum may overflow an int64, which a constant must not.
		f = append(f, fmt.Sprintf("Constant: int64(%#x + slide)", uint64(ins.Constant)))
	case ins.Constant != 0:
		f = append(f, fmt.Sprintf("Constant: %d", ins.Constant))
	}
	return f
}
