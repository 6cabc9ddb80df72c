package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/cname"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Header returns C declarations for the user's program: the structure of the record, if the
// plan's convention is prologue.ConventionRecord, the prototype of the program, and the structure
// of an event that Plan.Event reads. The types are those of linux/types.h and of bpftool's
// vmlinux.h. If functions differ in the types of their arguments, there is one structure for each
// form, which lists its functions.
func (p *Plan) Header() string {
	var b strings.Builder
	forms := p.forms()
	for i := range forms {
		if i > 0 {
			b.WriteByte('\n')
		}
		suffix := ""
		if len(forms) > 1 {
			suffix = "_" + strconv.Itoa(i+1)
			fmt.Fprintf(&b, "/* For %s. */\n", cname.Comment(functionsText(forms[i].functions)))
		}
		p.writeForm(&b, &forms[i], suffix)
	}
	return b.String()
}

// form is the arguments of sites that pass them with equal names and types.
type form struct {
	args      []Argument // of the first of the sites
	layout    prologue.Layout
	functions []string
}

// forms returns the distinct forms in the order of the sites.
func (p *Plan) forms() []form {
	var out []form
	known := make(map[string]int)
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Instance < 0 {
			continue
		}
		key := ""
		for j := range s.Args {
			key += p.declare(&s.Args[j], s.Args[j].Name) + ";"
		}
		n, ok := known[key]
		if !ok {
			n = len(out)
			known[key] = n
			out = append(out, form{args: s.Args, layout: s.Layout})
		}
		if f := &out[n]; !slices.Contains(f.functions, s.Function) {
			f.functions = append(f.functions, s.Function)
		}
		// A site without the argument has no type for it.
		for j := range s.Args {
			if a := &out[n].args[j]; reasons.Mistaken(a.Variable.Reason.Code) && !reasons.Mistaken(s.Args[j].Variable.Reason.Code) {
				out[n].args = slices.Clone(out[n].args)
				out[n].args[j] = s.Args[j]
			}
		}
	}
	return out
}

func functionsText(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more functions", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// maxIntErr is how many err bits a positive int has.
const maxIntErr = 31

func (p *Plan) writeForm(b *strings.Builder, f *form, suffix string) {
	name := cname.Identifier(p.Definition.Event)
	if p.Definition.Event == "" {
		name = "func"
	}
	errType := "int"
	if len(f.args) > maxIntErr {
		errType = "__u64"
	}
	var taken []string
	if p.Convention == prologue.ConventionRegisters {
		taken = []string{"ctx", "err"}
	} else if p.Doubt == DoubtKeep {
		taken = []string{"doubt"}
	}
	names := distinctNames(f.args, taken...)
	params := "void *ctx, " + errType + " err"
	layout := f.layout
	if p.Convention == prologue.ConventionRecord && layout.Size > 0 {
		fmt.Fprintf(b, "struct %s_args%s {\n", name, suffix)
		width := 0
		lines := make([]string, len(f.args))
		for i := range f.args {
			if lines[i] = p.declare(&f.args[i], names[i]) + ";"; layout.Fields[i].Size > 0 {
				width = max(width, len(lines[i]))
			}
		}
		for i := range f.args {
			a := &f.args[i]
			if layout.Fields[i].Size == 0 {
				fmt.Fprintf(b, "\t/* %s has no room here: %s */\n", names[i], cname.Comment(typeOf(a)+", "+noRoom(a)))
				continue
			}
			fmt.Fprintf(b, "\t%-*s /* %s */\n", width, lines[i], cname.Comment(typeOf(a)))
		}
		if layout.Doubts.Size > 0 {
			fmt.Fprintf(b, "\t%-*s /* of the bits of err, those of arguments that are there, but may not be what was passed */\n", width, "__u64 doubt;")
		}
		fmt.Fprintf(b, "};\n_Static_assert(sizeof(struct %s_args%s) == %d, \"%s_args%s\");\n\n", name, suffix, layout.Size, name, suffix)
		params += fmt.Sprintf(", struct %s_args%s *args", name, suffix)
	} else {
		for i := range f.args {
			params += ", " + p.declare(&f.args[i], names[i])
		}
	}
	d := *p.Definition
	if d.Event == "" {
		d.Event = "func"
	}
	if p.Doubt == DoubtKeep && p.Convention == prologue.ConventionRegisters {
		fmt.Fprintf(b, "/* Bit i of err: argument i is not fetched, or, with bit %d+i, it is there, but may not be what was passed. */\n", prologue.DoubtShift)
	}
	fmt.Fprintf(b, "/* SEC(%s) */\nint %s%s(%s);\n", cname.Comment(strconv.Quote(d.String())), name, suffix, params)
	p.writeEvent(b, f, name, suffix)
}

// writeEvent writes the structure of an event, which Plan.Event reads.
func (p *Plan) writeEvent(b *strings.Builder, f *form, name, suffix string) {
	fmt.Fprintf(b, "\n/* What a program can hand to user space, for Plan.Event of package plan. */\nstruct %s_event%s {\n", name, suffix)
	fmt.Fprint(b, "\t__u64 site; /* bpf_get_attach_cookie(ctx) */\n\t__u64 err;\n")
	switch {
	case p.Convention != prologue.ConventionRecord:
		names := distinctNames(f.args, "site", "err")
		for i := range f.args {
			fmt.Fprintf(b, "\t%s %s;\n", integer(f.args[i].Signed, 64), names[i])
		}
	case f.layout.Size > 0:
		fmt.Fprintf(b, "\tstruct %s_args%s args; /* *args */\n", name, suffix)
	}
	fmt.Fprint(b, "};\n")
}

// noRoom returns why an argument's place is empty.
func noRoom(a *Argument) string {
	if a.Size > 0 {
		return fmt.Sprintf("%d bytes", a.Size)
	}
	return "of unknown size"
}

// declare returns an argument's declaration in C: as a member of the record, or as a
// parameter of the program.
func (p *Plan) declare(a *Argument, name string) string {
	const aligned = " __attribute__((aligned(8)))"
	array := func(elem string, n, size int) string {
		s := fmt.Sprintf("%s %s[%d]", elem, name, n)
		if size%8 != 0 || !strings.HasSuffix(elem, "64") {
			s += aligned
		}
		return s
	}
	switch a.Kind {
	case prologue.KindString, prologue.KindUserString:
		return array("char", a.MaxBytes, a.MaxBytes)
	case prologue.KindSlice:
		return fmt.Sprintf("struct { __u64 length; __u8 elements[%d]; } %s%s", bpfstack.Room(a.MaxBytes), name, aligned)
	case prologue.KindComm:
		return array("char", bpfstack.CommSize, bpfstack.CommSize)
	case prologue.KindObject:
		if n := a.Type.Count; n > 0 && a.Size%n == 0 {
			return array(elementType(a.Type), n, a.Size)
		}
		return array("__u8", a.Size, a.Size)
	}
	bits := 64
	if loadable := a.Size == 1 || a.Size == 2 || a.Size == 4; loadable && p.Convention == prologue.ConventionRegisters {
		bits = 8 * a.Size
	}
	return integer(a.Signed, bits) + " " + name
}

func integer(signed bool, bits int) string {
	if signed {
		return fmt.Sprintf("__s%d", bits)
	}
	return fmt.Sprintf("__u%d", bits)
}

// elementType returns the C type of one element of a definition's type.
func elementType(t syntax.TypeSpec) string {
	if t.Kind == syntax.TypeChar {
		return "char"
	}
	return integer(t.Kind == syntax.TypeSigned, argument.ElementBits(t))
}

// typeOf returns the text of an argument's comment.
func typeOf(a *Argument) string {
	switch {
	case a.Kind == prologue.KindComm:
		return "the task's name"
	case a.Type.Kind != syntax.TypeNone:
		return a.Variable.Type.String() + ", as " + a.Type.String()
	}
	return a.Variable.Type.String()
}

// distinctNames returns the arguments' names as members of a structure or as parameters, where
// others are taken.
func distinctNames(args []Argument, taken ...string) []string {
	others := len(taken)
	for i := range args {
		base := cname.Identifier(args[i].Name)
		name := base
		for n := 2; slices.Contains(taken, name); n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		taken = append(taken, name)
	}
	return taken[others:]
}
