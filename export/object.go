package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfobject"
	"github.com/bpfprologue/bpfprologue/internal/choice"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Object writes an object file of BPF programs that any loader loads, made from one whose programs have definitions for section names, such
// as SEC("func=get_page page"). planOf makes the plan of a program's definition, for a kernel with attach cookies (Linux 5.15).
//
// Each such program becomes a function, PROGRAM_user, that a new program of its name calls: that runs the prologue of the probe that fired,
// by the attach cookie. It is in the section "uprobe" or "kprobe". Two variables of the map .rodata.sites say where it is to be attached:
//
//	const struct { unsigned long long offset, cookie; unsigned int flags, number; char where[64]; } sites_PROGRAM[];
//	const struct { char build_id[48]; char path[272]; } image_PROGRAM[1];
//
// offset is that of the probe in the file, in bytes, and where describes the site; in a kernel where is a symbol, and offset from its
// address. flags has 1 for a return probe, and 2 for a site that may be hit without a run beginning. number is the site's in the plan. Sites
// without a program are not there.
//
// The errors name the program. They are about the object (it must have BTF, little-endian), about a prologue that holds an address of the
// image, which moves, or a record that does not fit on the stack, or planOf's.
func Object(w io.Writer, object []byte, planOf func(program string, d *probe.Definition) (*plan.Plan, error)) error {
	o, err := bpfobject.Read(object)
	if err != nil {
		return err
	}
	sections := o.Definitions(probe.LooksLikeDefinition)
	if len(sections) == 0 {
		return errors.New("no program's section name is a definition, such as \"func=get_page page\"")
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if err := replace(o, name, sections[name], planOf); err != nil {
			return fmt.Errorf("program %s: %w", name, err)
		}
	}
	b, err := o.Bytes()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func replace(o *bpfobject.Object, name, section string, planOf func(string, *probe.Definition) (*plan.Plan, error)) error {
	d, err := probe.ParseSection(section)
	if err != nil {
		return err
	}
	p, err := planOf(name, d)
	if err != nil {
		return err
	}
	if err := checkReads(p); err != nil {
		return err
	}
	kernel, err := place.IsKernel(p.Image)
	if err != nil {
		return err
	}
	code, call, err := dispatch(p)
	if err != nil {
		return err
	}
	to := "uprobe"
	if kernel {
		to = "kprobe"
	}
	if err := o.Replace(name, to, code, call, "prologues of "+d.String()); err != nil {
		return err
	}
	table, err := siteTable(p, kernel)
	if err != nil {
		return err
	}
	o.Table("sites_"+name, []bpfobject.Field{
		{Name: "offset", Size: 8}, {Name: "cookie", Size: 8}, {Name: "flags", Size: 4}, {Name: "number", Size: 4}, {Name: "where", Size: whereBytes, Text: true},
	}, table)
	path := p.Image.Path()
	if kernel {
		path = ""
	}
	if len(path) >= pathBytes || len(p.Image.BuildID()) >= buildIDBytes {
		return fmt.Errorf("%s: the path has more than %d bytes", path, pathBytes-1)
	}
	image := make([]byte, buildIDBytes+pathBytes)
	copy(image, p.Image.BuildID())
	copy(image[buildIDBytes:], path)
	o.Table("image_"+name, []bpfobject.Field{{Name: "build_id", Size: buildIDBytes, Text: true}, {Name: "path", Size: pathBytes, Text: true}}, image)
	return p.Image.Changed()
}

// How many bytes the texts of the tables have, with a NUL.
const (
	whereBytes   = 64
	buildIDBytes = 48
	pathBytes    = 272
)

// Flags of a site.
const (
	flagReturn = 1
	flagAgain  = 2
)

// dispatch returns the code that runs the prologue of a cookie and calls the user's function, and the offset of that call.
func dispatch(p *plan.Plan) (code []byte, call int, err error) {
	if p.NumProbes() == 0 {
		return nil, 0, p.Nothing()
	}
	if len(p.Instances) > choice.MaxPrologues {
		return nil, 0, fmt.Errorf("%d prologues: one program has %d at most", len(p.Instances), choice.MaxPrologues)
	}
	all := make([]asm.Instructions, len(p.Instances))
	for i := range p.Instances {
		in := &p.Instances[i]
		switch {
		case len(in.Prologue.Addrs) > 0:
			return nil, 0, fmt.Errorf("%v: its prologue has an address of the image, which moves when it is loaded", &p.Sites[in.Sites[0]])
		case in.Prologue.Outside:
			return nil, 0, fmt.Errorf("%v: the record of its arguments does not fit on the stack", &p.Sites[in.Sites[0]])
		}
		all[i] = in.Prologue.Insns
	}
	insns := choice.Instructions([]choice.Group{{Prologues: all}})
	if n := choice.Size(insns); n > maxJumps {
		return nil, 0, fmt.Errorf("%d instructions of prologues: jumps reach %d", n, maxJumps)
	}
	call = choice.Size(insns) * asm.InstructionSize
	insns = append(insns, asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call)}, asm.Return())
	var b bytes.Buffer
	for i := range insns {
		if r := insns[i].Reference(); r != "" {
			return nil, 0, fmt.Errorf("a prologue refers to %s, which an object does not have", r)
		}
		if _, err := insns[i].Marshal(&b, binary.LittleEndian); err != nil {
			return nil, 0, err
		}
	}
	return b.Bytes(), call, nil
}

// maxJumps is how far jumps reach, in instructions (Documentation/bpf/standardization/instruction-set.rst).
const maxJumps = 32000

// siteTable returns the entries of a plan's sites.
func siteTable(p *plan.Plan, kernel bool) ([]byte, error) {
	var b []byte
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Instance < 0 {
			continue
		}
		offset, where := uint64(0), s.String()
		if kernel {
			if offset, where = s.Offset, s.Symbol; len(where) >= whereBytes || where == "" {
				return nil, fmt.Errorf("%v: its symbol has %d bytes, of at most %d", s, len(where), whereBytes-1)
			}
		} else {
			var err error
			if offset, err = inside.File(p.Image).FileOffset(s.Addr); err != nil {
				return nil, err
			}
		}
		flags := uint32(0)
		if s.Return {
			flags |= flagReturn
		}
		if s.Way.Again {
			flags |= flagAgain
		}
		b = binary.LittleEndian.AppendUint64(b, offset)
		b = binary.LittleEndian.AppendUint64(b, choice.Cookie(uint64(i), uint64(s.Instance), s.Way.Again))
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, flags), uint32(i))
		text := make([]byte, whereBytes)
		copy(text[:whereBytes-1], where)
		b = append(b, text...)
	}
	return b, nil
}
