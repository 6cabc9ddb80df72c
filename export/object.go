package export

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfobject"
	"github.com/bpfprologue/bpfprologue/internal/choice"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Object writes an object file of BPF programs that any loader loads, made from one whose programs have definitions for section names, such
// as SEC("func=get_page page"). planOf makes the plan of a program's definition, for a kernel with attach cookies (Linux 5.15); the options'
// path is that of the file that will be probed.
//
// Each such program becomes a function, PROGRAM_user, that a new program of its name calls: that runs the prologue of the probe that fired,
// by the attach cookie. It is in the section "uprobe", "uprobe.multi" or "kprobe". Variables of the map .rodata.sites say where it is to be attached:
//
//	const struct { unsigned long long offset, cookie; unsigned int flags, number; char where[64]; } sites_PROGRAM[];
//	const struct { char build_id[48]; char path[272]; unsigned long long stext; } image_PROGRAM[1];
//	const struct { unsigned long long address; } addresses_PROGRAM[];
//
// offset is that of the probe in the file, in bytes, and where describes the site; in a kernel where is a symbol, and offset from its
// address. flags has 1 for a return probe, and 2 for a site that may be hit without a run beginning. number is the site's in the plan. Sites
// without a program are not there. stext is the link-time address of the kernel's symbol _stext. addresses_PROGRAM is there if prologues read
// link-time addresses of a kernel: before the object is loaded, the distance of the running kernel's _stext from stext is added to each.
//
// The errors name the program. They are about the object (it must have BTF, little-endian), about a record that does not fit on the stack, an image without a build ID, a module, or planOf's.
func Object(w io.Writer, object []byte, planOf func(program string, d *probe.Definition) (*plan.Plan, Options, error)) error {
	o, err := bpfobject.Read(object)
	if err != nil {
		return err
	}
	sections := o.Definitions(probe.LooksLikeDefinition)
	if len(sections) == 0 {
		return bpfobject.ErrNoDefinition
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

func replace(o *bpfobject.Object, name, section string, planOf func(string, *probe.Definition) (*plan.Plan, Options, error)) error {
	d, err := probe.ParseSection(section)
	if err != nil {
		return err
	}
	p, options, err := planOf(name, d)
	if err != nil {
		return err
	}
	if err := checkReads(p); err != nil {
		return err
	}
	x, err := newExporter(p, options)
	if err != nil {
		return err
	}
	if err := x.placed(); err != nil {
		return err
	}
	var moving addresses
	code, err := x.dispatch(&moving)
	if err != nil {
		return err
	}
	code.Section, code.Line = "uprobe", "prologues of "+d.String()
	switch {
	case options.Kernel && options.Multi:
		return errors.New("probes of a kernel are not attached at once: kprobe.multi knows the beginnings of functions alone")
	case options.Kernel:
		code.Section = "kprobe"
	case options.Multi:
		code.Section = "uprobe.multi"
	}
	if err := o.Replace(name, code); err != nil {
		return err
	}
	if len(moving) > 0 {
		var b []byte
		for _, address := range moving {
			b = binary.LittleEndian.AppendUint64(b, address)
		}
		o.Table(addressTable+"_"+name, []bpfobject.Field{{Name: "address", Size: 8}}, b)
	}
	table, err := x.siteTable()
	if err != nil {
		return err
	}
	o.Table("sites_"+name, []bpfobject.Field{
		{Name: "offset", Size: 8}, {Name: "cookie", Size: 8}, {Name: "flags", Size: 4}, {Name: "number", Size: 4}, {Name: "where", Size: whereBytes, Text: true},
	}, table)
	image := make([]byte, buildIDBytes+pathBytes)
	copy(image, p.Image.BuildID())
	if !options.Kernel {
		copy(image[buildIDBytes:], x.o.Path)
	}
	image = binary.LittleEndian.AppendUint64(image, x.stext)
	o.Table("image_"+name, []bpfobject.Field{
		{Name: "build_id", Size: buildIDBytes, Text: true}, {Name: "path", Size: pathBytes, Text: true}, {Name: "stext", Size: 8},
	}, image)
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

// placed returns an error for an image that a loader could not tell from another one.
func (x *exporter) placed() error {
	switch id := x.p.Image.BuildID(); {
	case id == "":
		return fmt.Errorf("%s has no build ID, by which loaders know it", x.p.Image.Path())
	case len(id) >= buildIDBytes:
		return fmt.Errorf("%s: the build ID has %d digits, of at most %d", x.p.Image.Path(), len(id), buildIDBytes-1)
	case x.module != "":
		return errors.New("a module's places are known when it is loaded: objects are for kernels and programs")
	case !x.o.Kernel && len(x.o.Path) >= pathBytes:
		return fmt.Errorf("%s: the path has %d bytes, of at most %d", x.o.Path, len(x.o.Path), pathBytes-1)
	}
	return nil
}

// dispatch returns the code that runs the prologue of a cookie and calls the user's function.
func (x *exporter) dispatch(moving *addresses) (*bpfobject.Code, error) {
	p := x.p
	if p.NumProbes() == 0 {
		return nil, p.Nothing()
	}
	if len(p.Instances) > choice.MaxPrologues {
		return nil, fmt.Errorf("%d prologues: one program has %d at most", len(p.Instances), choice.MaxPrologues)
	}
	all := make([]asm.Instructions, len(p.Instances))
	for i := range p.Instances {
		in := &p.Instances[i]
		switch {
		case in.Prologue.Outside:
			return nil, fmt.Errorf("%v: the record of its arguments does not fit on the stack", &p.Sites[in.Sites[0]])
		case !x.o.Kernel: // a program's addresses do not move, or its prologues find it
			all[i] = in.Prologue.Insns
		case len(in.Prologue.Addrs) > 0 && x.stext == 0:
			return nil, fmt.Errorf("%v: its prologue has an address of the kernel, which moves: where to is not known without the symbol _stext", &p.Sites[in.Sites[0]])
		default:
			all[i] = moving.loads(in.Prologue.Insns, in.Prologue.Addrs)
		}
	}
	insns := choice.Instructions([]choice.Group{{Prologues: all}})
	if n := choice.Size(insns); n > choice.MaxSize {
		return nil, fmt.Errorf("%d instructions of prologues: jumps reach %d", n, choice.MaxSize)
	}
	code := &bpfobject.Code{Call: choice.Size(insns) * asm.InstructionSize, Table: addressTable}
	insns = append(insns, asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call)}, asm.Return())
	var b bytes.Buffer
	for i := range insns {
		in := insns[i]
		switch r := in.Reference(); r {
		case "":
		case addressTable:
			code.Loads = append(code.Loads, b.Len())
			in = in.WithReference("")
		default:
			return nil, fmt.Errorf("a prologue refers to %s, which an object does not have", r)
		}
		if _, err := in.Marshal(&b, binary.LittleEndian); err != nil {
			return nil, err
		}
	}
	code.Insns = b.Bytes()
	return code, nil
}

// siteTable returns the entries of a plan's sites.
func (x *exporter) siteTable() ([]byte, error) {
	p := x.p
	var b []byte
	// Probes of one kind can be attached together.
	order := make([]int, len(p.Sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(kind(&p.Sites[a]), kind(&p.Sites[b])), cmp.Compare(a, b))
	})
	for _, i := range order {
		s := &p.Sites[i]
		if s.Instance < 0 {
			continue
		}
		if s.Semaphore != 0 {
			return nil, fmt.Errorf("%v: loaders of objects do not increment the counter that the program looks at", s)
		}
		offset, where := uint64(0), s.String()
		var err error
		if x.o.Kernel {
			// Several functions may have the name; and the table has no room for all.
			if where, offset, err = x.symbol(s.Site); err != nil || len(where) >= whereBytes {
				where, offset, err = x.base, s.Addr-x.baseAddr, nil
			}
			if where == "" {
				err = fmt.Errorf("%v: its symbol %q is not the only one of that name", s, s.Symbol)
			}
		} else {
			offset, err = s.FileOffset()
		}
		if err != nil {
			return nil, err
		}
		flags := kind(s)
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

// kind returns the flag of a return probe, or 0.
func kind(s *plan.Site) uint32 {
	if s.Return {
		return flagReturn
	}
	return 0
}
