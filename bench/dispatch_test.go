package bench

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/instances"
)

// BenchmarkHit is the mean time that programs run at a hit, as the kernel counts it, at
// allocating functions of the C library while a command uses them: programs of instances, and one that
// chooses among their prologues.
func BenchmarkHit(b *testing.B) {
	img, r := libc(b)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	p := planOf(b, img, r, "*alloc* $params")
	programs := loadInstances(b, p)
	defer closePrograms(b, programs)
	loaded := loadDispatch(b, p)
	defer loaded.Close()
	run := func(b *testing.B, programs []*ebpf.Program, attach func() (*instances.Attachment, error)) {
		a, err := attach()
		if err != nil {
			b.Fatal(err)
		}
		defer a.Close()
		counted := func() (time.Duration, uint64) {
			var total time.Duration
			var hits uint64
			for _, prog := range programs {
				s, err := prog.Stats()
				if err != nil {
					b.Fatal(err)
				}
				total, hits = total+s.Runtime, hits+s.RunCount
			}
			return total, hits
		}
		before, hitsBefore := counted()
		for b.Loop() {
			if err := exec.Command("/bin/ls", "-lR", "/usr/include/linux").Run(); err != nil {
				b.Fatal(err)
			}
		}
		after, hits := counted()
		b.ReportMetric(float64((after-before).Nanoseconds())/float64(hits-hitsBefore), "ns/hit")
		b.ReportMetric(float64(len(p.Instances)), "prologues")
	}
	for range 3 { // side by side
		b.Run("instances", func(b *testing.B) {
			run(b, programs, func() (*instances.Attachment, error) {
				return instances.Attach(context.Background(), p, programs, r, instances.AttachOptions{})
			})
		})
		b.Run("dispatch", func(b *testing.B) {
			run(b, loaded.Programs, func() (*instances.Attachment, error) {
				return loaded.Attach(context.Background(), r, instances.AttachOptions{})
			})
		})
	}
}
