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

// Task is what a guest does.
type Task struct {
	KASLR bool
	Limit time.Duration // 0: DefaultLimit

	// Plans are attached while a child of init makes the calls. The first must be
	// Marker's.
	Plans []Plan
	Calls []Call

	// Sites are link-time addresses at which probes are attached one by one.
	Sites []uint64

	// Commands are run one after the other, after Module is loaded: a kernel module's path
	// in the guest, or "".
	Module   string
	Commands [][]string
	Files    map[string]string // paths in the guest, and the files outside to put there

	Results string // device that init reports to
}

// Marker is the definition that separates the hits of the calls: before each call, the child
// asks for the process group of FirstMark plus the call's number, a process that does not
// exist. Nothing else does that.
const (
	Marker    = "do_getpgid pid"
	FirstMark = 0x40000000
)

// With the argument Workload, init is a program that does for some time, its next argument,
// what programs usually do. With the argument Calls it makes the task's calls. With the argument
// Interrupt it runs a command that attaches probes, works for five seconds, sends the command SIGINT,
// and prints a line Interrupted. With the argument Limited it becomes a command, after the names of
// the capabilities that this has, "BPF,PERFMON".
const (
	Workload  = "workload"
	Calls     = "calls"
	Interrupt = "interrupt"
	Limited   = "limited"
)

// With the argument Allocate, init makes so many system calls as the next argument says. Each has the
// kernel allocate SmallSize bytes in sock_kmalloc, and one of LargeEvery LargeSize bytes. It prints a
// line Allocated: the number of calls, and the nanoseconds of the fastest Round of them.
const (
	Allocate   = "allocate"
	Allocated  = "of %d calls the fastest round took %d ns\n"
	Round      = 1000
	SmallSize  = 64
	LargeSize  = 12000
	LargeEvery = 100
)

// Interrupted is the format of what the argument Interrupt prints to its standard error: how long
// the command took to attach its probes, its error, how long it took to end, and how many probes
// there still were then, and for how long from its SIGINT on.
const Interrupted = "attached in %d ms, ended: %v in %d ms, %d probes left for %d ms\n"

// Call is a system call, by name, with its arguments.
type Call struct {
	Name string
	Args []Arg
}

// Arg is an argument of a call: a number, memory with some bytes, or the result of an
// earlier call.
type Arg struct {
	Number uint64
	Memory []byte // its address is the argument
	// Pointers are other blocks of memory, by the offset in Memory where their addresses
	// are stored.
	Pointers map[int][]byte
	Result   int // 1 for what the first call has returned
}

// Plan is the part of a plan.Plan that attaching needs; it needs no debug information.
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
	Return   bool
	Kinds    []prologue.ArgKind // of its arguments
	Sizes    []int
}

// Instance is an instance of a Plan.
type Instance struct {
	Insns  []byte // encoded
	Addrs  []int  // as in prologue.Prologue
	Stack  int
	Layout prologue.Layout
	Multi  bool // as plan.Instance has it
}

// Pack takes what attaching needs from a plan.
func Pack(p *plan.Plan) (Plan, error) {
	out := Plan{Definition: p.Definition.String(), Convention: p.Convention}
	for i := range p.Sites {
		s := &p.Sites[i]
		packed := Site{Addr: s.Addr, Instance: s.Instance, Return: s.Return}
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
		site := plan.Site{Site: &dwarfloc.Site{Addr: s.Addr}, Instance: s.Instance, Return: s.Return}
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

// Line is one line of init's report, in JSON. It has one of these members.
type Line struct {
	Refused *Refused `json:"refused,omitempty"`
	Child   *Child   `json:"child,omitempty"`
	Hit     *Hit     `json:"hit,omitempty"`
	Attach  *Refused `json:"attach,omitempty"`
	Output  *Output  `json:"output,omitempty"`
	Done    *Done    `json:"done,omitempty"`
	Failed  string   `json:"failed,omitempty"`
}

// Refused is a site of a plan at which the kernel refuses a probe, or one of Task.Sites with
// the kernel's answer, where 0 is success.
type Refused struct {
	Plan, Site int
	Errno      uint
	Text       string
	State      string // what the kernel's list of kprobes says of the probe: "[OPTIMIZED]", "[FTRACE]", or "["
}

// Child is what the calls returned.
type Child struct {
	Task    int // the thread that made them
	Results []int64
}

// Hit is one hit of a probe in the child.
type Hit struct {
	Plan, Site, Task int
	Err              uint64
	Data             [][]byte // of each argument
}

// Output is what a command printed.
type Output struct {
	Out, Err string
	Failed   string // its error, or ""
}

// Done ends a report.
type Done struct {
	Lines int // before this one
	Slide uint64
	Multi bool   // the kernel has kprobe.multi
	Lost  uint64 // hits
}

// Report is everything that init reported.
type Report struct {
	Refused []Refused
	Child   Child
	Hits    []Hit
	Attach  []Refused
	Outputs []Output // of Task.Commands
	Done    Done
}

// readReport reads the lines of a report and checks that it is complete.
func readReport(path string, shared bool) (*Report, error) {
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
		if shared && !bytes.HasPrefix(in.Bytes(), []byte("{")) {
			n-- // the kernel's
			continue
		}
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
