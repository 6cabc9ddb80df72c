package bench

import (
	"context"
	"os"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// BenchmarkPack is what a question costs that the pack of a kernel answers, which PACK names: it is opened, asked and
// closed each time. It reports the processor's time too, which is what is left of it where others work.
func BenchmarkPack(b *testing.B) {
	path := os.Getenv("PACK")
	if path == "" {
		b.Skip("PACK is not set")
	}
	for _, q := range []string{"vfs_read file->f_path.dentry->d_name.name:string count", "tcp_sendmsg sk size", "get_page page"} {
		def, err := probe.Parse(q)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(q, func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				img, err := dwarfloc.Open(path, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := plan.New(context.Background(), img, def, plan.Options{}); err != nil {
					b.Fatal(err)
				}
				if err := img.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}
