package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// The tables in the map .rodata.sites: see go doc github.com/bpfprologue/bpfprologue/export Object.
type (
	site struct {
		Offset, Cookie uint64
		Flags, Number  uint32
		Where          [64]byte
	}
	image struct {
		BuildID [48]byte
		Path    [272]byte
		Stext   uint64
	}
)

const flagReturn = 1

func text(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

// table returns a variable of the object: nil if it has none of that name.
func table[T any](spec *ebpf.CollectionSpec, name string) ([]T, error) {
	v := spec.Variables[name]
	if v == nil {
		return nil, nil
	}
	var entry T
	out := make([]T, int(v.Size())/binary.Size(entry))
	return out, v.Get(out)
}

// Prepare checks that each program is for the file, or the kernel, that is here, and makes it one for probes that are attached together
// if the kernel has such. It is called before the programs are loaded.
func Prepare(spec *ebpf.CollectionSpec) error {
	multi := hasMulti()
	for name, program := range spec.Programs {
		images, err := table[image](spec, "image_"+name)
		if err != nil {
			return err
		}
		if len(images) == 0 {
			continue // a program of another kind
		}
		path := text(images[0].Path[:])
		id, err := buildID(path)
		if err != nil {
			return err
		}
		if want := text(images[0].BuildID[:]); id != want {
			return fmt.Errorf("%s: the build ID is %s, and the programs are for %s", path, id, want)
		}
		if path != "" && multi {
			program.AttachType = ebpf.AttachTraceUprobeMulti
		}
		addresses, err := table[uint64](spec, "addresses_"+name)
		if err != nil || len(addresses) == 0 {
			continue
		}
		stext, err := kernelSymbol("_stext")
		if err != nil {
			return err
		}
		for i := range addresses {
			addresses[i] += stext - images[0].Stext
		}
		if err := spec.Variables["addresses_"+name].Set(addresses); err != nil {
			return err
		}
	}
	return nil
}

// buildID returns the build ID of a file, or with "" of the running kernel.
func buildID(path string) (string, error) {
	if path == "" {
		notes, err := os.ReadFile("/sys/kernel/notes")
		return idIn(notes), err
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		notes, err := io.ReadAll(p.Open())
		if err != nil {
			return "", err
		}
		if id := idIn(notes); id != "" {
			return id, nil
		}
	}
	return "", nil
}

// idIn returns the build ID that notes have, or "".
func idIn(notes []byte) string {
	for len(notes) >= 12 {
		le := binary.LittleEndian
		name, size, kind := uint64(le.Uint32(notes)+3)&^3, uint64(le.Uint32(notes[4:])), le.Uint32(notes[8:])
		end := 12 + name + (size+3)&^3
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == 3 && bytes.HasPrefix(notes[12:], []byte("GNU\x00")) {
			return hex.EncodeToString(notes[12+name:][:size])
		}
		notes = notes[end:]
	}
	return ""
}

// kernelSymbol returns where a symbol is in the running kernel.
func kernelSymbol(name string) (addr uint64, err error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); strings.HasSuffix(line, " "+name) {
			if _, err := fmt.Sscanf(line, "%x", &addr); err == nil && addr != 0 {
				return addr, nil
			}
		}
	}
	return 0, fmt.Errorf("/proc/kallsyms does not show where %s is: it does to root", name)
}

// hasMulti reports whether the kernel attaches uprobes together (Linux 6.6).
func hasMulti() bool {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return false
	}
	defer p.Close()
	x, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return false
	}
	l, err := x.UprobeMulti(nil, p, &link.UprobeMultiOptions{Addresses: []uint64{0}, PID: uint32(os.Getpid())})
	if err == nil {
		_ = l.Close()
	}
	return !errors.Is(err, ebpf.ErrNotSupported)
}

// Attached are the probes of an object.
type Attached struct {
	links           []link.Link
	Probes, Refused int
}

// Attach attaches loaded programs, by their names, at all their sites.
func Attach(spec *ebpf.CollectionSpec, programs map[string]*ebpf.Program) (*Attached, error) {
	a := new(Attached)
	var last error
	for name, program := range programs {
		sites, err := table[site](spec, "sites_"+name)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		images, err := table[image](spec, "image_"+name)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		if len(images) == 0 {
			continue
		}
		multi, together := spec.Programs[name].AttachType == ebpf.AttachTraceUprobeMulti, 1
		if multi {
			together = len(sites)
		}
		for len(sites) > 0 {
			n := 1
			for n < together && n < len(sites) && (sites[n].Flags^sites[0].Flags)&flagReturn == 0 {
				n++
			}
			l, err := attach(program, text(images[0].Path[:]), sites[:n], multi)
			switch {
			case err == nil:
				a.links, a.Probes = append(a.links, l), a.Probes+n
			case n > 1:
				together = 1 // one of them is refused
				continue
			default:
				a.Refused, last = a.Refused+1, err
			}
			sites = sites[n:]
		}
	}
	if a.Probes == 0 {
		return nil, errors.Join(last, errors.New("nothing is attached"))
	}
	return a, nil
}

func attach(p *ebpf.Program, path string, sites []site, multi bool) (link.Link, error) {
	s, returns := &sites[0], sites[0].Flags&flagReturn != 0
	if path == "" {
		o := &link.KprobeOptions{Offset: s.Offset, Cookie: s.Cookie}
		if returns {
			return link.Kretprobe(text(s.Where[:]), p, o)
		}
		return link.Kprobe(text(s.Where[:]), p, o)
	}
	x, err := link.OpenExecutable(path)
	if err != nil {
		return nil, err
	}
	o := &link.UprobeOptions{Address: s.Offset, Cookie: s.Cookie}
	m := new(link.UprobeMultiOptions)
	for i := range sites {
		m.Addresses, m.Cookies = append(m.Addresses, sites[i].Offset), append(m.Cookies, sites[i].Cookie)
	}
	switch {
	case multi && returns:
		return x.UretprobeMulti(nil, p, m)
	case multi:
		return x.UprobeMulti(nil, p, m)
	case returns:
		return x.Uretprobe("", p, o)
	}
	return x.Uprobe("", p, o)
}

// Close ends the probes.
func (a *Attached) Close() (err error) {
	for _, l := range a.links {
		err = errors.Join(err, l.Close())
	}
	return err
}
