package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
)

// callerProgram has a place where n and fixed are known by what the caller passed alone: a number (fixed), or what its own caller passed (n). kept is in a register,
// and stacked on the stack.
const callerProgram = `volatile long sink;
__attribute__((noinline, noclone)) void work(void) { sink++; asm volatile("" ::: "rdi", "rsi", "rdx", "rbx", "memory"); }
__attribute__((noinline, noclone)) void middle(long n, long kept, long fixed, long d, long e, long f, long stacked) {
	work();
	sink += kept + stacked;
	sink++;
	work();
}
%s
int main(void) { for (long i = 0; i < 200000; i++) { %s } return 0; }
`

// BenchmarkCaller is the mean time that a program runs at a hit, as the kernel counts it, for a value in a register, one on the stack, and one in the
// caller's frame, which the return address names, or that and the caller's: of two calls, and of forty.
func BenchmarkCaller(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("probes need root")
	}
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	for _, calls := range []int{2, 40} {
		var functions, body strings.Builder
		for i := range calls {
			fmt.Fprintf(&functions, "__attribute__((noinline, noclone)) void by%d(long k) { middle(k + %d, k, %d, 0, 0, 0, k); sink++; }\n", i, i, 3*i)
			if i%(calls/2) == calls/2-1 {
				fmt.Fprintf(&body, "by%d(i);", i)
			}
		}
		path := filepath.Join(b.TempDir(), "caller")
		c := exec.Command("gcc", "-g", "-O2", "-x", "c", "-o", path, "-")
		c.Stdin = strings.NewReader(fmt.Sprintf(callerProgram, &functions, &body))
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		img, err := dwarfloc.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer img.Close()
		r, err := instances.Find(img, instances.FindOptions{})
		if err != nil {
			b.Fatal(err)
		}
		for range 3 { // side by side
			for _, name := range []string{"kept", "stacked", "fixed", "n"} {
				b.Run(fmt.Sprintf("%d/%s", calls, name), func(b *testing.B) {
					p := planOf(b, img, r, "middle:2 "+name)
					programs := loadInstances(b, p)
					defer closePrograms(b, programs)
					a, err := instances.Attach(context.Background(), p, programs, r, instances.AttachOptions{})
					if err != nil {
						b.Fatal(err)
					}
					defer a.Close()
					var total time.Duration
					hits := uint64(0)
					for b.Loop() {
						if err := exec.Command(path).Run(); err != nil {
							b.Fatal(err)
						}
					}
					for _, prog := range programs {
						s, err := prog.Stats()
						if err != nil {
							b.Fatal(err)
						}
						total, hits = total+s.Runtime, hits+s.RunCount
					}
					b.ReportMetric(float64(total.Nanoseconds())/float64(hits), "ns/hit")
				})
			}
		}
	}
}
