package guest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Task is what a guest is to do.
type Task struct {
	KASLR bool
	Limit time.Duration // 0: DefaultLimit

	// Plans are attached while a child of init makes the calls. The first must be
	// Marker's.
	Plans []Plan
	Calls []Call

	// Sites are link-time addresses to attach a probe at, each for itself.
	Sites []uint64

	// Commands are run one behind the other, when Module is loaded: a kernel module's
	// path in the guest, or "".
	Module   string
	Commands [][]string
	Files    map[string]string // paths in the guest, and the files outside that are there

	Results string // device that init reports to
}

// Marker is the definition that tells the calls' hits apart: before each call, the
// child asks for the process group of FirstMark plus the call's number, a process that
// is not there. Nobody else does.
const (
	Marker    = "do_getpgid pid"
	FirstMark = 0x40000000
)

// Workload is the argument of init that makes it a program that does for some time, its
// next argument, what programs do.
//
// Calls makes it one that makes the task's calls.
const (
	Workload = "workload"
	Calls    = "calls"
)

// Call is a system call by its name, with its arguments.
type Call struct {
	Name string
	Args []Arg
}

// Arg is an argument of a call: a number, or memory that holds bytes, or what an
// earlier call has returned.
type Arg struct {
	Number uint64
	Memory []byte // its address is the argument
	// Pointers says where in Memory addresses of other memory are to be put, by its offset.
	Pointers map[int][]byte
	Result   int // 1 for what the first call has returned
}

// Plan is what attaching needs of an plan.Plan: it makes no use of debug information.
type Plan struct {
	Definition string
	Convention prologue.Convention
	Sites      []Site
	Instances  []Instance
}

// Site is a site of a Plan.
type Site struct {
	Addr     uint64
	Instance int
	Kinds    []prologue.ArgKind // of its arguments
	Sizes    []int
}

// Instance is an instance of a Plan.
type Instance struct {
	Insns  []byte // as the kernel has them
	Addrs  []int  // as prologue.Prologue has them
	Stack  int
	Layout prologue.Layout
	Multi  bool // as plan.Instance has it
}

// Pack takes what attaching needs from a plan.
func Pack(p *plan.Plan) (Plan, error) {
	out := Plan{Definition: p.Definition.String(), Convention: p.Convention}
	for i := range p.Sites {
		s := &p.Sites[i]
		packed := Site{Addr: s.Addr, Instance: s.Instance}
		for j := range s.Args {
			packed.Kinds = append(packed.Kinds, s.Args[j].Kind)
			packed.Sizes = append(packed.Sizes, s.Args[j].Size)
		}
		out.Sites = append(out.Sites, packed)
	}
	for i := range p.Instances {
		pro := p.Instances[i].Prologue
		var insns bytes.Buffer
		if err := pro.Insns.Marshal(&insns, binary.LittleEndian); err != nil {
			return out, fmt.Errorf("%s: instance %d: %w", out.Definition, i, err)
		}
		out.Instances = append(out.Instances, Instance{insns.Bytes(), pro.Addrs, pro.Stack, pro.Layout, p.Instances[i].Multi})
	}
	return out, nil
}

// Unpack makes a plan that can be attached to the kernel of an image.
func (p *Plan) Unpack(img *dwarfloc.Image, target plan.Target) (*plan.Plan, error) {
	def, err := probe.Parse(p.Definition)
	if err != nil {
		return nil, err
	}
	out := &plan.Plan{Definition: def, Image: img, Target: target, Convention: p.Convention}
	for _, s := range p.Sites {
		site := plan.Site{Site: &dwarfloc.Site{Addr: s.Addr}, Instance: s.Instance}
		for i, kind := range s.Kinds {
			site.Args = append(site.Args, plan.Argument{Arg: prologue.Arg{Kind: kind, Size: s.Sizes[i]}})
		}
		out.Sites = append(out.Sites, site)
	}
	for i, in := range p.Instances {
		insns, err := asm.AppendInstructions(nil, bytes.NewReader(in.Insns), binary.LittleEndian, "linux")
		if err != nil {
			return nil, fmt.Errorf("%s: instance %d: %w", p.Definition, i, err)
		}
		if len(insns) == 0 {
			return nil, fmt.Errorf("%s: instance %d has no instructions", p.Definition, i)
		}
		// The first of them has a comment, as prologue.Emit writes: line information is
		// there for all functions or for none.
		insns[0] = insns[0].WithSource(asm.Comment(p.Definition))
		out.Instances = append(out.Instances, plan.Instance{Number: i, Multi: in.Multi, Prologue: &prologue.Prologue{
			Insns: insns, Addrs: in.Addrs, Stack: in.Stack, Layout: in.Layout, Convention: p.Convention,
		}})
	}
	for i, s := range p.Sites {
		if s.Instance >= 0 {
			in := &out.Instances[s.Instance]
			in.Sites = append(in.Sites, i)
		}
	}
	return out, nil
}

// Line is what init reports in one line of JSON: one of its members.
type Line struct {
	Refused *Refused `json:"refused,omitempty"`
	Child   *Child   `json:"child,omitempty"`
	Hit     *Hit     `json:"hit,omitempty"`
	Attach  *Refused `json:"attach,omitempty"`
	Output  *Output  `json:"output,omitempty"`
	Done    *Done    `json:"done,omitempty"`
	Failed  string   `json:"failed,omitempty"`
}

// Refused is a site of a plan that the kernel takes no probe at, or of Task.Sites with
// the kernel's answer; 0 is success.
type Refused struct {
	Plan, Site int
	Errno      uint
	Text       string
}

// Child is what the calls have returned.
type Child struct {
	Task    int // the thread that made them
	Results []int64
}

// Hit is one time that a probe fired in the child.
type Hit struct {
	Plan, Site, Task int
	Err              uint64
	Data             [][]byte // of each argument
}

// Output is what a command has printed.
type Output struct {
	Out, Err string
	Failed   string // how it ended, unless well
}

// Done ends a report.
type Done struct {
	Lines int // that went before
	Slide uint64
	Multi bool   // the kernel has kprobe.multi
	Lost  uint64 // hits
}

// Report is all that init has reported.
type Report struct {
	Refused []Refused
	Child   Child
	Hits    []Hit
	Attach  []Refused
	Outputs []Output // of Task.Commands
	Done    Done
}

// readReport reads the lines of a report and checks that all are there.
func readReport(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Report{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<26)
	n := 0
	for ; in.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d of the report: %w: %.200q", n+1, err, in.Bytes())
		}
		switch {
		case l.Failed != "":
			return nil, errors.New(l.Failed)
		case l.Refused != nil:
			r.Refused = append(r.Refused, *l.Refused)
		case l.Child != nil:
			r.Child = *l.Child
		case l.Hit != nil:
			r.Hits = append(r.Hits, *l.Hit)
		case l.Attach != nil:
			r.Attach = append(r.Attach, *l.Attach)
		case l.Output != nil:
			r.Outputs = append(r.Outputs, *l.Output)
		case l.Done != nil:
			if r.Done = *l.Done; r.Done.Lines != n {
				return nil, fmt.Errorf("the report has %d lines, and init wrote %d", n, r.Done.Lines)
			}
			return r, nil
		}
	}
	return nil, errors.Join(in.Err(), fmt.Errorf("the report ends after %d lines", n))
}
