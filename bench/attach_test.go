package bench

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// user is a program that does nothing.
var user = &ebpf.ProgramSpec{Name: "nothing", License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}

const libcPath = "/lib/x86_64-linux-gnu/libc.so.6"

// libc opens the C library.
func libc(b *testing.B) (*dwarfloc.Image, *instances.Running) {
	b.Helper()
	if os.Getuid() != 0 {
		b.Skip("probes need root")
	}
	img, err := dwarfloc.Open(libcPath, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = img.Close() })
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return img, r
}

// planOf returns a plan for where an image runs, or for nowhere.
func planOf(b *testing.B, img *dwarfloc.Image, r *instances.Running, text string) *plan.Plan {
	b.Helper()
	def, err := probe.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	o := plan.Options{Convention: prologue.ConventionRecord}
	if r != nil {
		o.Target = r.Target()
	}
	p, err := plan.New(context.Background(), img, def, o)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkAttach loads, attaches and detaches programs at functions of the C library, in this
// process alone, with one program for each distinct prologue and with few programs that choose.
// It needs root, and the C library's debug information (libc6-dbg).
func BenchmarkAttach(b *testing.B) {
	img, r := libc(b)
	for _, text := range []string{"strlen", "str* $params", "s* $params", "* $params"} {
		p := planOf(b, img, r, text)
		o := instances.AttachOptions{PID: os.Getpid()}
		name := strings.ReplaceAll(text, " ", "_")
		b.Run(name+"/dispatch", func(b *testing.B) {
			t := times{sites: len(p.Sites)}
			for b.Loop() {
				began := time.Now()
				loaded := loadDispatch(b, p)
				t.programs = loaded.Programs
				t.add(b, began, func() (*instances.Attachment, error) { return loaded.Attach(context.Background(), r, o) })
				if err := loaded.Close(); err != nil {
					b.Fatal(err)
				}
			}
			t.report(b)
		})
		b.Run(name+"/instances", func(b *testing.B) {
			t := times{sites: len(p.Sites)}
			for b.Loop() {
				began := time.Now()
				programs := loadInstances(b, p)
				t.programs = programs
				t.add(b, began, func() (*instances.Attachment, error) {
					return instances.Attach(context.Background(), p, programs, r, o)
				})
				closePrograms(b, programs)
			}
			t.report(b)
		})
	}
}

// BenchmarkAttachPeer attaches bpftrace's programs at the out-of-line functions that BenchmarkAttach
// has with their inlined instances, and ends. It needs root and bpftrace.
func BenchmarkAttachPeer(b *testing.B) {
	libc(b)
	bpftrace, err := exec.LookPath("bpftrace")
	if err != nil {
		b.Skip(err)
	}
	for _, pattern := range []string{"str*", "s*"} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(bpftrace, "-e", "uprobe:"+libcPath+":"+pattern+" { }", "-c", "/bin/true")
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}

// times are sums over the rounds of a benchmark.
type times struct {
	sites                int
	programs             []*ebpf.Program
	kib                  float64
	load, attach, detach time.Duration
}

// add attaches and detaches programs whose loading began at a time.
func (t *times) add(b *testing.B, began time.Time, attach func() (*instances.Attachment, error)) {
	loaded := time.Now()
	t.kib = memory(b, t.programs)
	began = began.Add(time.Since(loaded)) // that is not counted
	loaded = time.Now()
	a, err := attach()
	if err != nil {
		b.Fatal(err)
	}
	attached := time.Now()
	if err := a.Close(); err != nil {
		b.Fatal(err)
	}
	t.load, t.attach, t.detach = t.load+loaded.Sub(began), t.attach+attached.Sub(loaded), t.detach+time.Since(attached)
}

func (t *times) report(b *testing.B) {
	b.ReportMetric(float64(t.sites), "sites")
	b.ReportMetric(float64(len(t.programs)), "programs")
	b.ReportMetric(t.kib, "kernel-KiB")
	for what, d := range map[string]time.Duration{"load": t.load, "attach": t.attach, "detach": t.detach} {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), what+"-ms/op")
	}
}
