package packfile_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// BenchmarkOf opens the pack that PACK names and asks for one function, each time anew.
func BenchmarkOf(b *testing.B) {
	file, err := os.ReadFile(os.Getenv("PACK"))
	if err != nil {
		b.Skip("PACK names no pack")
	}
	section, err := packfile.Find(file, "p")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"vfs_read", "tcp_sendmsg", "get_page", "get_current"} {
		b.Run(name, func(b *testing.B) {
			sites := 0
			for b.Loop() {
				f, err := packfile.Open(section, "p")
				if err != nil {
					b.Fatal(err)
				}
				refs, err := f.Of(name)
				if err != nil {
					b.Fatal(err)
				}
				sites = 0
				if err := f.Each(refs, func(int, *packfile.Site) error { sites++; return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(sites), "sites")
			b.ReportAllocs()
		})
	}
	runtime.KeepAlive(file)
}
