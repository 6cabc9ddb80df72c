// Package bench measures each stage separately, so that a regression can be located: open,
// index, expand, resolve, emit. The images are a small fixture and, with BENCH_VMLINUX=FILE,
// a kernel ("make vmlinux" fetches Debian's).
//
//	BENCH_VMLINUX=$(scripts/fetch-vmlinux.sh) make bench
package bench

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/sites"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// image is one image to measure, and a definition that fits it.
type image struct {
	name       string
	definition string
	wide       string
	open       func() (*dwarfloc.Image, error)
}

func images(b *testing.B) []image {
	const name = "basic-gcc12-O2-dwarf5.elf"
	data, err := fixtures.Bytes(name)
	if err != nil {
		b.Fatal(err)
	}
	out := []image{{
		name: "fixture", definition: "my_func_*_abcd arg1", wide: "*",
		open: func() (*dwarfloc.Image, error) { return dwarfloc.FromBytes(name, data, nil) },
	}}
	if path := os.Getenv("BENCH_VMLINUX"); path != "" {
		out = append(out, image{
			name: "vmlinux", definition: "get_page page", wide: "tcp_*",
			open: func() (*dwarfloc.Image, error) { return dwarfloc.Open(path, nil) },
		})
	}
	return out
}

func each(b *testing.B, f func(b *testing.B, im image)) {
	for _, im := range images(b) {
		b.Run(im.name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, im)
		})
	}
}

func open(b *testing.B, im image) *dwarfloc.Image {
	b.Helper()
	img, err := im.open()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = img.Close() })
	return img
}

// nothing matches no function: a search for it only scans all units.
type nothing struct{}

func (nothing) Match(string) bool       { return false }
func (nothing) Literal() (string, bool) { return "", false }

func scan(img *dwarfloc.Image) error {
	return img.EachSite(context.Background(), nothing{}, func(int, dwarfloc.SiteRef) error { return nil })
}

func scanned(b *testing.B, im image) *dwarfloc.Image {
	b.Helper()
	img := open(b, im)
	if err := scan(img); err != nil {
		b.Fatal(err)
	}
	return img
}

// BenchmarkOpen maps the file and reads its headers.
func BenchmarkOpen(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		for b.Loop() {
			img, err := im.open()
			if err != nil {
				b.Fatal(err)
			}
			_ = img.Close()
		}
	})
}

// BenchmarkIndex opens an image and finds all functions and inlined instances.
func BenchmarkIndex(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		for b.Loop() {
			img, err := im.open()
			if err != nil {
				b.Fatal(err)
			}
			if err := scan(img); err != nil {
				b.Fatal(err)
			}
			_ = img.Close()
		}
	})
}

// BenchmarkExpand finds the sites of one function and of a pattern in an indexed
// image.
func BenchmarkExpand(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		for _, text := range []string{im.definition, im.wide} {
			def, err := probe.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			p, err := glob.Compile(def.Point.Function)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(def.Point.Function, func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					sites, err := sites.Select(context.Background(), img, sites.Selection{Functions: p})
					if err != nil {
						b.Fatal(err)
					}
					n = len(sites)
				}
				b.ReportMetric(float64(n), "sites")
			})
		}
	})
}

// BenchmarkResolve finds every parameter of a pattern's sites.
func BenchmarkResolve(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		p, err := glob.Compile(im.wide)
		if err != nil {
			b.Fatal(err)
		}
		sites, err := sites.Select(context.Background(), img, sites.Selection{Functions: p})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for b.Loop() {
			n = 0
			for _, s := range sites {
				params, err := s.Params()
				if err != nil {
					b.Fatal(err)
				}
				n += len(params)
			}
		}
		b.ReportMetric(float64(n), "parameters")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/parameter")
	})
}

// BenchmarkEmit writes the prologues of resolved arguments.
func BenchmarkEmit(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		def, err := probe.Parse(im.definition)
		if err != nil {
			b.Fatal(err)
		}
		p, err := plan.New(context.Background(), img, def, plan.Options{})
		if err != nil {
			b.Fatal(err)
		}
		insns, helpers := 0, 0
		for b.Loop() {
			insns, helpers = 0, 0
			for i := range p.Sites {
				s := &p.Sites[i]
				pro, err := share.Emit(s.Site, s.Args, share.Options{Convention: p.Convention})
				if err != nil {
					b.Fatal(err)
				}
				insns += len(pro.Insns)
				helpers += pro.Helpers
			}
		}
		b.ReportMetric(float64(insns)/float64(len(p.Sites)), "insns/site")
		b.ReportMetric(float64(helpers)/float64(len(p.Sites)), "helpers/site")
	})
}

// BenchmarkPlan is the main job on an indexed image: definition in, instances out.
func BenchmarkPlan(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		def, err := probe.Parse(im.definition)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := plan.New(context.Background(), img, def, plan.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCoverage resolves every parameter of every site.
func BenchmarkCoverage(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		for b.Loop() {
			if _, err := coverage.Measure(context.Background(), img); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkColdCoverage is the same of an image of which nothing is known yet: ways into bodies are
// followed, and witnesses learn, as they do for the first report of an image.
func BenchmarkColdCoverage(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		for b.Loop() {
			img, err := im.open()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := coverage.Measure(context.Background(), img); err != nil {
				b.Fatal(err)
			}
			_ = img.Close()
		}
	})
}

// BenchmarkShare generates and compares the prologues of all sites, with parameters that are
// already resolved: the rest of what coverage does.
func BenchmarkShare(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		var mu sync.Mutex
		var sites [][]*dwarfloc.Variable
		err := img.EachSite(context.Background(), nil, func(_ int, s dwarfloc.SiteRef) error {
			params, err := s.Params()
			mu.Lock()
			defer mu.Unlock()
			sites = append(sites, params)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		var totals share.Totals
		for b.Loop() {
			s := share.NewSharer(img, share.Options{})
			for _, params := range sites {
				if _, err := s.Parameters(params); err != nil {
					b.Fatal(err)
				}
			}
			totals = s.Totals()
		}
		b.ReportMetric(float64(totals.Prologues), "prologues")
		b.ReportMetric(float64(totals.Distinct), "distinct")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(sites)), "ns/site")
	})
}

// BenchmarkWays finds every way into and out of every inlined body: it follows the code of all
// functions that something was inlined into.
func BenchmarkWays(b *testing.B) {
	each(b, func(b *testing.B, im image) {
		img := scanned(b, im)
		var mu sync.Mutex
		functions := make(map[string]bool)
		err := img.EachSite(context.Background(), nil, func(_ int, r dwarfloc.SiteRef) error {
			if r.Kind != dwarfloc.SiteInline {
				return nil
			}
			s, err := r.Site()
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			functions[s.Symbol+" "+s.Callers[len(s.Callers)-1].Function] = true
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		var bodies, several, marked, unknown, in, out int
		before := processorTime(b)
		for b.Loop() {
			bodies, several, marked, unknown, in, out = 0, 0, 0, 0, 0, 0
			err := inside.EachWays(img, context.Background(), func(_ int, _ *dwarfloc.Site, w *runs.Ways) error {
				if w == nil {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				bodies++
				in += len(w.In)
				out += len(w.Out)
				if len(w.In) > 1 {
					several++
				}
				if slices.ContainsFunc(w.In, func(w runs.Way) bool { return w.Again }) {
					marked++
				}
				if w.Unknown != "" {
					unknown++
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((processorTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		b.ReportMetric(float64(len(functions)), "functions")
		b.ReportMetric(float64(bodies), "bodies")
		b.ReportMetric(float64(several), "several")
		b.ReportMetric(float64(marked), "marked")
		b.ReportMetric(float64(unknown), "unknown")
		b.ReportMetric(float64(in), "ways-in")
		b.ReportMetric(float64(out), "ways-out")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(len(functions), 1)), "ns/function")
	})
}

// processorTime is what the process has used of all processors, which other processes do not
// lengthen much.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
