package bench

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

const calling = `
#include <stdlib.h>
volatile long sink;
__attribute__((noinline)) void hit(long n, const char *text) { sink += n + text[0]; }
int main(int argc, char **argv) {
	long n = atol(argv[1]);
	for (long i = 0; i < n; i++)
		hit(i, "some text");
	return sink == 1;
}
`

// BenchmarkEvents is how many hits with two arguments, one of them a string, a session delivers in a
// second, of a program that does nothing but call the probed function, and how many are lost with the
// usual buffer; beside bpftrace, which prints them. It needs root and gcc.
func BenchmarkEvents(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("probes need root")
	}
	path := filepath.Join(b.TempDir(), "calling")
	source := path + ".c"
	if err := os.WriteFile(source, []byte(calling), 0o600); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O2", "-o", path, source).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	const calls = 300_000
	b.Run("tracer", func(b *testing.B) {
		img, err := dwarfloc.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer img.Close()
		r, err := instances.Find(img, instances.FindOptions{})
		if err != nil {
			b.Fatal(err)
		}
		p := planOf(b, img, r, "hit n text:string")
		s, err := tracer.Open(context.Background(), r, []*plan.Plan{p}, tracer.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		hits := 0
		var took time.Duration
		for b.Loop() {
			began := time.Now()
			ctx, stop := context.WithCancel(context.Background())
			go func() {
				defer stop()
				if out, err := exec.Command(path, strconv.Itoa(calls)).CombinedOutput(); err != nil {
					b.Errorf("%v\n%s", err, out)
				}
				took += time.Since(began)
			}()
			if err := s.Run(ctx, func(*tracer.Hit) error { hits++; return nil }); err != nil {
				b.Fatal(err)
			}
			<-ctx.Done()
			if err := s.Attachments[0].Silence(false); err != nil {
				b.Fatal(err)
			}
		}
		not, err := s.Unreported()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(hits)/took.Seconds(), "hits/s")
		b.ReportMetric(100*float64(not.Lost)/float64(not.Lost+uint64(hits)), "%lost")
	})
	b.Run("bpftrace", func(b *testing.B) {
		bpftrace, err := exec.LookPath("bpftrace")
		if err != nil {
			b.Skip(err)
		}
		hits := 0
		began := time.Now()
		for b.Loop() {
			cmd := exec.Command(bpftrace, "-e", `uprobe:`+path+`:hit { printf("%d %s\n", arg0, str(arg1)); }`, "-c", path+" "+strconv.Itoa(calls))
			out, err := cmd.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			hits += countLines(b, out)
			if err := cmd.Wait(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(hits)/time.Since(began).Seconds(), "hits/s")
		b.ReportMetric(100*(1-float64(hits)/float64(calls*b.N)), "%lost")
	})
}

func countLines(b *testing.B, r io.Reader) (n int) {
	b.Helper()
	buf := make([]byte, 1<<16)
	for {
		k, err := r.Read(buf)
		for _, c := range buf[:k] {
			if c == '\n' {
				n++
			}
		}
		if err == io.EOF {
			return n
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
