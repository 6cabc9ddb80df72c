package stacks

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/mapped"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// object is a file with functions.
type object struct {
	name   string
	img    *dwarfloc.Image // nil without debug information
	file   *image.File
	code   []section
	inode  uint64
	frames map[frameKey][]Frame
	opened bool // by this package
}

type frameKey struct {
	link   uint64
	after  bool // a call
	probed *dwarfloc.Site
}

// section is a section of instructions.
type section struct{ addr, size, offset uint64 }

func newObject(name string, img *dwarfloc.Image, file *image.File) *object {
	o := &object{name: name, img: img, file: file, frames: make(map[frameKey][]Frame)}
	for _, s := range file.Sections() {
		if offset, err := file.FileOffset(s.Addr); s.Exec && s.Size > 0 && err == nil {
			o.code = append(o.code, section{s.Addr, s.Size, offset})
		}
	}
	var st unix.Stat_t
	if unix.Stat(name, &st) == nil {
		o.inode = st.Ino
	}
	return o
}

// link returns the link-time address of what is at an offset in the file.
func (o *object) link(offset uint64) (uint64, bool) {
	for _, s := range o.code {
		if offset >= s.offset && offset-s.offset < s.size {
			return s.addr + offset - s.offset, true
		}
	}
	return 0, false
}

// holds reports whether there are instructions at a link-time address.
func (o *object) holds(link uint64) bool {
	return slices.ContainsFunc(o.code, func(s section) bool { return link >= s.addr && link-s.addr < s.size })
}

// initialNamespace is the PID namespace in which programs in the kernel number processes
// (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const initialNamespace = "pid:[4026531836]"

// process is what is mapped into a process.
type process struct{ maps []mapped.Mapping }

// objectKey tells mapped files apart: paths mean nothing across containers.
type objectKey struct {
	inode uint64
	path  string
}

// maxProcesses is how many processes are remembered.
const maxProcesses = 1 << 14

// process returns what is known of a process, and reads it again if that is asked for.
func (n *Names) process(pid int, again bool) *process {
	p := n.processes[pid]
	if p != nil && !again {
		return p
	}
	if !n.initial {
		return &process{} // PIDs here are others
	}
	maps, err := mapped.Of(pid)
	if err != nil || len(maps) == 0 { // it has ended
		if n.watcher != nil {
			maps = n.watcher.Mappings(pid)
		}
		if p != nil && len(maps) == 0 {
			return p // what was known stays
		}
	}
	if len(n.processes) >= maxProcesses {
		clear(n.processes)
	}
	p = &process{maps}
	n.processes[pid] = p
	return p
}

func (p *process) mapping(addr uint64) *mapped.Mapping {
	i := sort.Search(len(p.maps), func(i int) bool { return p.maps[i].End > addr })
	if i < len(p.maps) && p.maps[i].Start <= addr {
		return &p.maps[i]
	}
	return nil
}

// userFrames returns the frames of an address in a process.
func (n *Names) userFrames(s *tracer.Stack, addr uint64, after bool) []Frame {
	site := s.Plan.Sites[s.Site].Site
	isProbe := s.At != 0 && !s.Plan.Sites[s.Site].Return // At is where the site is
	var probed *dwarfloc.Site
	if addr == s.At && isProbe && !after {
		probed = site
	}
	own := n.objectOf(s.Plan.Image)
	p := n.process(s.PID, false)
	m := p.mapping(addr)
	if m == nil || isProbe && !n.agrees(p, own, s.At, site) {
		p = n.process(s.PID, true) // it has executed another program, or mapped a file
		m = p.mapping(addr)
	}
	if m != nil && (!isProbe || n.agrees(p, own, s.At, site)) {
		if o := n.object(s.PID, m); o != nil {
			if link, ok := o.link(addr - m.Start + m.Offset); ok {
				return o.framesIn(addr, link, after, probed)
			}
		}
		return []Frame{{Addr: addr, Object: m.Path}}
	}
	if link := addr - s.At + site.Addr; isProbe && own != nil && own.holds(link) {
		return own.framesIn(addr, link, after, probed)
	}
	return []Frame{{Addr: addr}}
}

// agrees reports whether the probed image is mapped where a probe in it was hit.
func (n *Names) agrees(p *process, own *object, at uint64, site *dwarfloc.Site) bool {
	m := p.mapping(at)
	if m == nil || own == nil {
		return false
	}
	link, ok := own.link(at - m.Start + m.Offset)
	return ok && link == site.Addr
}

// objectOf returns the object of an image that is open.
func (n *Names) objectOf(img *dwarfloc.Image) *object {
	for _, o := range n.own {
		if o.img == img {
			return o
		}
	}
	o := newObject(img.Path(), img, inside.File(img))
	n.own = append(n.own, o)
	return o
}

// object returns the object of a mapped file, or nil if it cannot be read.
func (n *Names) object(pid int, m *mapped.Mapping) *object {
	if m.Inode == 0 {
		return nil // no file: the vDSO, or code that was written while running
	}
	for _, o := range n.own {
		if o.inode == m.Inode {
			return o
		}
	}
	key := objectKey{m.Inode, m.Path}
	o, known := n.objects[key]
	if !known {
		o = n.open(pid, m)
		n.objects[key] = o
	}
	return o
}

// open opens a mapped file: as the process sees it, or, if that is another one now, the mapped file
// itself.
func (n *Names) open(pid int, m *mapped.Mapping) *object {
	path := strings.TrimSuffix(m.Path, " (deleted)")
	for _, at := range []string{path, fmt.Sprintf("/proc/%d/root%s", pid, path), fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End)} {
		var st unix.Stat_t
		if unix.Stat(at, &st) != nil || st.Ino != m.Inode || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if img, err := n.o.Open(at); err == nil {
			o := newObject(path, img, inside.File(img))
			o.opened = true
			return o
		}
		if f, err := image.Open(at, nil); err == nil {
			o := newObject(path, nil, f)
			o.opened = true
			return o
		}
	}
	return nil
}

func (n *Names) closeObjects() error {
	var errs []error
	for _, o := range n.objects {
		switch {
		case o == nil || !o.opened:
		case o.img != nil:
			errs = append(errs, o.img.Close())
		default:
			errs = append(errs, o.file.Close())
		}
	}
	clear(n.objects)
	return errors.Join(errs...)
}
