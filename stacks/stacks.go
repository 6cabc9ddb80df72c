// Package stacks says which functions the addresses of a stack are in, those inlined there too, with
// files and lines.
//
//	names := stacks.New(stacks.Options{Images: []*dwarfloc.Image{img}})
//	defer names.Close()
//	err = session.Run(ctx, func(h *tracer.Hit) error {
//		for _, f := range names.Frames(h.Stack) {
//			fmt.Println(f)
//		}
//		return nil
//	})
//
// Names.Text and Names.CallerText are for tracer.SummaryOptions.
//
// A program's addresses are found by /proc/PID/maps, which is there as long as the process is: it is read
// when a process is seen first, and again when an address is nowhere in it. Of processes that have ended the kernel has told what they mapped
// since New; it needs CAP_PERFMON for that. Of others addresses in the image
// that was probed are still known, from where the probe was hit. Other mapped files are opened where the
// process sees them. Without debug information a function is a symbol. In a PID namespace, where processes have
// other numbers than the kernel gives, /proc is not asked. The kernel's functions are those of
// its image, if there is one, and else of /proc/kallsyms.
package stacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/mapped"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Options are options of New. The zero Options work.
type Options struct {
	// Images are images that are open already. They stay open.
	Images []*dwarfloc.Image
	// Kernel is the running kernel's image, if it is open, and Slide where it runs, as in
	// plan.Target.
	Kernel *dwarfloc.Image
	Slide  uint64
	// Open opens other images. If nil, that is dwarfloc.Open without options.
	Open func(path string) (*dwarfloc.Image, error)
}

// Frame is one function of a stack: a call, or an inlined one.
type Frame struct {
	Addr     uint64 // where the instruction is, or the one to which the call returns
	Function string // in the debug information, or a symbol; "" if it is not known
	Offset   uint64 // bytes from the symbol's start
	Inlined  bool   // into the frame after it, which has the same Addr
	File     string // "" if it is not known
	Line     int
	// Object is the file that is mapped there, "[kernel]", "[MODULE]", or "" if nothing is known.
	Object string
}

// String prints the frame: "in_left+0x14 at prog.c:52 [prog]".
func (f Frame) String() string {
	var b strings.Builder
	switch {
	case f.Function == "":
		fmt.Fprintf(&b, "%#x", f.Addr)
	case f.Inlined:
		b.WriteString(f.Function + " inlined")
	default:
		fmt.Fprintf(&b, "%s+%#x", f.Function, f.Offset)
	}
	if f.File != "" {
		fmt.Fprintf(&b, " at %s:%d", f.File, f.Line)
	}
	switch {
	case strings.HasPrefix(f.Object, "["):
		b.WriteString(" " + f.Object)
	case f.Object != "":
		b.WriteString(" [" + filepath.Base(f.Object) + "]")
	}
	return b.String()
}

// Name returns the function's name, or the address of one that is not known.
func (f Frame) Name() string {
	if f.Function == "" {
		return fmt.Sprintf("%#x", f.Addr)
	}
	return f.Function
}

// Names finds functions. It is not for concurrent use.
type Names struct {
	o         Options
	processes map[int]*process
	objects   map[objectKey]*object
	own       []*object // of Options.Images
	kernel    *object
	symbols   []kernelSymbol  // of /proc/kallsyms; read when they are needed
	asked     bool            // for symbols
	watcher   *mapped.Watcher // nil if it is not allowed
	initial   bool            // this process is in initialNamespace
}

// New returns a Names. The caller must close it.
func New(o Options) *Names {
	if o.Open == nil {
		o.Open = func(path string) (*dwarfloc.Image, error) { return dwarfloc.Open(path, nil) }
	}
	n := &Names{o: o, processes: make(map[int]*process), objects: make(map[objectKey]*object)}
	if own, err := os.Readlink("/proc/self/ns/pid"); err != nil || own == initialNamespace {
		n.initial = true // or the kernel has no namespaces
		if w, err := mapped.Watch(); err == nil {
			n.watcher = w
		}
	}
	for _, img := range o.Images {
		n.own = append(n.own, newObject(img.Path(), img, inside.File(img)))
	}
	if o.Kernel != nil {
		n.kernel = newObject(o.Kernel.Path(), o.Kernel, inside.File(o.Kernel))
	}
	return n
}

// Close closes the images that were opened.
func (n *Names) Close() error {
	err := n.closeObjects()
	if n.watcher != nil {
		err = errors.Join(err, n.watcher.Close())
	}
	return err
}

// Frames returns the frames of a stack, the innermost first; the kernel's are before the program's.
func (n *Names) Frames(s *tracer.Stack) (out []Frame) {
	if s == nil {
		return nil
	}
	if len(s.User) > 0 {
		n.process(s.PID, false) // soon: it may end
	}
	for i, addr := range s.Kernel {
		if probe := s.Plan.Sites[s.Site].Addr + n.o.Slide; i == 0 && addr == probe+1 {
			addr = probe // x86 has gone on by the length of a breakpoint
		}
		out = append(out, n.kernelFrames(addr, i > 0)...)
	}
	for i, addr := range s.User {
		out = append(out, n.userFrames(s, addr, i > 0)...)
	}
	return out
}

// Text is tracer.SummaryOptions.StackText.
func (n *Names) Text(s *tracer.Stack) string { return Folded(n.Frames(s)) }

// CallerText is tracer.SummaryOptions.CallerText.
func (n *Names) CallerText(s *tracer.Stack, addr uint64) string { return n.caller(s, addr).Name() }

// caller returns the innermost function at an address to which a call returns, in the process, or the
// kernel, of a stack.
func (n *Names) caller(s *tracer.Stack, addr uint64) Frame {
	frames := n.kernelFrames
	if s.At != 0 {
		frames = func(addr uint64, after bool) []Frame { return n.userFrames(s, addr, after) }
	}
	return frames(addr, true)[0]
}

// Folded prints frames as flame graphs are made of: names from the outermost to the innermost, with
// semicolons between them.
func Folded(frames []Frame) string {
	names := make([]string, len(frames))
	for i, f := range frames {
		names[len(frames)-1-i] = strings.NewReplacer(";", ":", "\n", " ").Replace(f.Name())
	}
	return strings.Join(names, ";")
}

// framesIn returns the frames of a link-time address in an object. For an address after a call, the call
// counts. probed is the site of a probe there, or nil.
func (o *object) framesIn(addr, link uint64, after bool, probed *dwarfloc.Site) []Frame {
	of := link
	if after {
		of--
	}
	key := frameKey{link, after, probed}
	known, ok := o.frames[key]
	if !ok {
		known = o.find(of, link, probed)
		o.frames[key] = known
	}
	out := slices.Clone(known)
	for i := range out {
		out[i].Addr = addr
	}
	return out
}

// find returns the frames of an address, without Addr.
func (o *object) find(of, link uint64, probed *dwarfloc.Site) []Frame {
	last := Frame{Object: o.name}
	if sym := o.file.SymbolAt(of, ""); sym != nil {
		last.Function, last.Offset = sym.Name, link-sym.Addr
	}
	if o.img == nil {
		return []Frame{last}
	}
	site, err := o.img.SiteAt(context.Background(), of)
	if err != nil {
		return []Frame{last}
	}
	file, line := site.File, site.Line
	if probed != nil && probed.Kind != dwarfloc.SiteInstruction && (probed.Function != site.Function || len(probed.Callers) != len(site.Callers)) {
		// A body begins where one in it does, or one before it ends.
		file, line, _ = probed.Declared()
		site = probed
	}
	var out []Frame
	name := site.Function
	callFile, callLine := site.CallFile, site.CallLine
	for _, c := range site.Callers {
		out = append(out, Frame{Function: name, Inlined: true, File: file, Line: line, Object: o.name})
		name, file, line = c.Function, callFile, callLine
		callFile, callLine = c.CallFile, c.CallLine
	}
	last.Function, last.File, last.Line = name, file, line
	return append(out, last)
}
