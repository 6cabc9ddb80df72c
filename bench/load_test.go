package bench

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
)

// loadInstances loads one program for each instance of a plan.
func loadInstances(b *testing.B, p *plan.Plan) []*ebpf.Program {
	b.Helper()
	specs, err := instances.ProgramSpecs(p, user)
	if err != nil {
		b.Fatal(err)
	}
	programs := make([]*ebpf.Program, len(specs))
	for i, s := range specs {
		if programs[i], err = ebpf.NewProgram(s); err != nil {
			b.Fatal(err)
		}
	}
	return programs
}

func closePrograms(b *testing.B, programs []*ebpf.Program) {
	b.Helper()
	for _, p := range programs {
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// loadDispatch loads few programs that choose among the prologues of all instances.
func loadDispatch(b *testing.B, p *plan.Plan) *instances.Dispatched {
	b.Helper()
	d, err := instances.NewDispatch(p, func(int) *ebpf.ProgramSpec { return user })
	if err != nil {
		b.Fatal(err)
	}
	loaded, err := d.Load()
	if err != nil {
		b.Fatal(err)
	}
	return loaded
}

// memory returns how much memory programs take in the kernel, in KiB: their pages, as the kernel
// counts them, and their machine code, which the kernel packs (bpf_prog_pack).
func memory(b *testing.B, programs []*ebpf.Program) float64 {
	b.Helper()
	sum := uint64(0)
	for _, p := range programs {
		info, err := p.Info()
		if err != nil {
			b.Fatal(err)
		}
		locked, _ := info.Memlock()
		machine, err := info.JitedSize()
		if err != nil {
			b.Fatal(err)
		}
		sum += locked + uint64(machine)
	}
	return float64(sum) / 1024
}

// BenchmarkLoad loads programs for a kernel's kmalloc, which is inlined at some 2,000 sites with 700
// distinct prologues. The kernel is another than the one that runs, so nothing is attached.
func BenchmarkLoad(b *testing.B) {
	path := os.Getenv("BENCH_VMLINUX")
	if path == "" {
		b.Skip("BENCH_VMLINUX is not set")
	}
	if os.Getuid() != 0 {
		b.Skip("loading programs needs root")
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer img.Close()
	p := planOf(b, img, nil, "kmalloc size flags")
	run := func(name string, load func() ([]*ebpf.Program, func())) {
		b.Run(name, func(b *testing.B) {
			kib, n := 0.0, 0
			for b.Loop() {
				programs, end := load()
				b.StopTimer()
				kib, n = memory(b, programs), len(programs)
				end()
				b.StartTimer()
			}
			b.ReportMetric(kib, "kernel-KiB")
			b.ReportMetric(float64(n), "programs")
			b.ReportMetric(float64(len(p.Sites)), "sites")
		})
	}
	run("dispatch", func() ([]*ebpf.Program, func()) {
		d := loadDispatch(b, p)
		return d.Programs, func() { _ = d.Close() }
	})
	run("instances", func() ([]*ebpf.Program, func()) {
		programs := loadInstances(b, p)
		return programs, func() { closePrograms(b, programs) }
	})
}
