package main

import (
	"cmp"
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// row is one image on some processors.
type growthRow struct {
	path     string
	size     float64 // of .debug_info, MB
	procs    int
	index    []time.Duration // one each round
	coverage []time.Duration
}

// measureGrowth growth measures how the time of an index and of a coverage report grows
// with the image and shrinks with processors.
//
//	growth [-rounds N] IMAGE...
//
// For each image, on one processor and on two, it prints a row of a table: the size of
// .debug_info, the time to open and scan the image, and the time of a coverage report (every
// parameter of every site, with its prologues), opening included. Times are medians of N
// rounds, also per MB (10^6 bytes) of .debug_info. Each round begins with an empty heap and
// measures all images with both numbers of processors.
func measureGrowth() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "how often each is measured")
	flag.Parse()
	var rows []*growthRow
	for _, path := range flag.Args() {
		size, err := infoSize(path)
		if err != nil {
			log.Fatal(err)
		}
		for procs := 1; procs <= min(2, runtime.NumCPU()); procs++ {
			rows = append(rows, &growthRow{path: path, size: size, procs: procs})
		}
	}
	if len(rows) == 0 || *rounds < 1 {
		log.Fatal("usage: growth [-rounds N] IMAGE...")
	}
	for range *rounds {
		for _, r := range rows {
			if err := r.measure(); err != nil {
				log.Fatal(err)
			}
		}
	}
	fmt.Println("| image | .debug_info, MB | processors | index, s | ms per MB | coverage, s | ms per MB |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, r := range rows {
		i, c := median(r.index).Seconds(), median(r.coverage).Seconds()
		fmt.Printf("| %s | %.1f | %d | %.3f | %.2f | %.3f | %.2f |\n",
			filepath.Base(r.path), r.size, r.procs, i, 1000*i/r.size, c, 1000*c/r.size)
	}
}

// infoSize is the size of .debug_info in MB, decompressed.
func infoSize(path string) (float64, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s := f.Section(".debug_info")
	if s == nil {
		return 0, fmt.Errorf("%s: no .debug_info", path)
	}
	return float64(s.Size) / 1e6, nil
}

func (r *growthRow) measure() error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.procs))
	ctx := context.Background()
	timed := func(f func(*dwarfloc.Image) error) (time.Duration, error) {
		debug.FreeOSMemory()
		start := time.Now()
		img, err := dwarfloc.Open(r.path, nil)
		if err != nil {
			return 0, err
		}
		defer img.Close()
		err = f(img)
		return time.Since(start), err
	}
	d, err := timed(func(img *dwarfloc.Image) error {
		return img.EachSite(ctx, nothing{}, func(int, dwarfloc.SiteRef) error { return nil })
	})
	if err != nil {
		return err
	}
	r.index = append(r.index, d)
	d, err = timed(func(img *dwarfloc.Image) error {
		_, err := coverage.Measure(ctx, img)
		return err
	})
	r.coverage = append(r.coverage, d)
	return err
}

func median[T cmp.Ordered](of []T) T {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// nothing matches no function: a search for it only scans all units.
type nothing struct{}

func (nothing) Match(string) bool       { return false }
func (nothing) Literal() (string, bool) { return "", false }
