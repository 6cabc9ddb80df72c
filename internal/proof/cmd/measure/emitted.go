package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/place"
	"github.com/bpfprologue/bpfprologue/internal/share"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// histogram counts how often each number occurs.
type histogram []int

func (h *histogram) add(n int) {
	if grow := n + 1 - len(*h); grow > 0 {
		*h = append(*h, make([]int, grow)...)
	}
	(*h)[n]++
}

func (h *histogram) merge(o histogram) {
	for n, count := range o {
		if count > 0 {
			h.add(n)
			(*h)[n] += count - 1
		}
	}
}

func (h histogram) count() (n int) {
	for _, c := range h {
		n += c
	}
	return n
}

func (h histogram) sum() (n int) {
	for v, c := range h {
		n += v * c
	}
	return n
}

func (h histogram) mean() float64 { return float64(h.sum()) / float64(max(h.count(), 1)) }

// quantile returns the smallest number that a share of all numbers does not exceed.
func (h histogram) quantile(share float64) int {
	left := share * float64(h.count())
	for n, c := range h {
		if left -= float64(c); c > 0 && left <= 0 {
			return n
		}
	}
	return max(len(h)-1, 0)
}

// row prints a histogram as a row of the first table.
func (h histogram) row(name string) {
	fmt.Printf("| %s | %d | %d | %.2f | %d | %d | %d | %d |\n", name, h.count(), h.sum(), h.mean(),
		h.quantile(0.5), h.quantile(0.9), h.quantile(0.99), h.quantile(1))
}

// can is what a kernel can do that prologues are written for.
type can struct {
	name    string
	options share.Options
}

// kernels returns what kernels can do, in the order in which they learned it.
func emittedKernels(img *dwarfloc.Image) ([]can, error) {
	stays, err := place.Stays(img)
	return []can{
		{"helpers only, as Linux 4.19", share.Options{}},
		{"signs extended by one instruction, as Linux 6.6", share.Options{SignExtends: true}},
		{"loads of memory too, as Linux 6.17", share.Options{Reads: prologue.ReadCast, SignExtends: true, Stays: stays}},
	}, err
}

// written is what prologues for one kernel sum up to.
type emittedWritten struct {
	sharer                 *share.Sharer
	prologues, insns, rare int
	calls                  int
}

// counts are what one goroutine counts.
type counts struct {
	sites, bare int // bare: without parameters
	// Per site that has parameters, per prologue and per prologue of one, two and
	// three parameters.
	siteInsns, siteCalls histogram
	insns, calls         [prologue.MaxArgs + 1]histogram // 0: all
	single               int                             // helper calls if each parameter had a prologue of its own
	sharer, singles      *share.Sharer
	kernels              []emittedWritten
}

func (c *counts) add(params []*dwarfloc.Variable) error {
	c.sites++
	if len(params) == 0 {
		c.bare++
		return nil
	}
	groups, err := c.sharer.Parameters(params)
	if err != nil {
		return err
	}
	insns, calls := 0, 0
	for _, g := range groups {
		insns += g.Instructions
		calls += g.HelperCalls
		for _, n := range []int{0, len(g.Params)} {
			c.insns[n].add(g.Instructions)
			c.calls[n].add(g.HelperCalls)
		}
	}
	c.siteInsns.add(insns)
	c.siteCalls.add(calls)
	for i := range c.kernels {
		k := &c.kernels[i]
		groups, err := k.sharer.Parameters(params)
		if err != nil {
			return err
		}
		for _, g := range groups {
			k.prologues++
			k.insns += g.Instructions
			k.rare += g.Rare
			k.calls += g.HelperCalls
		}
	}
	for i := range params {
		alone, err := c.singles.Parameters(params[i : i+1])
		if err != nil {
			return err
		}
		c.single += alone[0].HelperCalls
	}
	return nil
}

func (c *counts) merge(o *counts) {
	c.sites += o.sites
	c.bare += o.bare
	c.siteInsns.merge(o.siteInsns)
	c.siteCalls.merge(o.siteCalls)
	for i := range c.insns {
		c.insns[i].merge(o.insns[i])
		c.calls[i].merge(o.calls[i])
	}
	c.single += o.single
	for i := range c.kernels {
		k, from := &c.kernels[i], &o.kernels[i]
		k.prologues += from.prologues
		k.insns += from.insns
		k.rare += from.rare
		k.calls += from.calls
	}
	c.sharer.Merge(o.sharer)
}

// measureEmitted emitted counts the instructions and helper calls of the prologues that
// fetch every parameter of every site of an image, and prints their distribution
// as tables in Markdown.
func measureEmitted() {
	if len(os.Args) != 2 {
		log.Fatalf("usage: %s IMAGE", os.Args[0])
	}
	img, err := dwarfloc.Open(os.Args[1], nil)
	if err != nil {
		log.Fatal(err)
	}
	defer img.Close()
	all, err := emittedKernels(img)
	if err != nil {
		log.Fatal(err)
	}
	workers := make([]counts, runtime.GOMAXPROCS(0))
	for i := range workers {
		workers[i].sharer = share.NewSharer(img, share.Options{})
		workers[i].singles = share.NewSharer(img, share.Options{})
		for _, k := range all {
			workers[i].kernels = append(workers[i].kernels, emittedWritten{sharer: share.NewSharer(img, k.options)})
		}
	}
	err = img.EachSite(context.Background(), nil, func(worker int, s dwarfloc.SiteRef) error {
		params, err := s.Params()
		if err != nil {
			return err
		}
		return workers[worker].add(params)
	})
	if err != nil {
		log.Fatal(err)
	}
	c := &workers[0]
	for i := range workers[1:] {
		c.merge(&workers[1+i])
	}
	c.print(filepath.Base(img.Path()), all)
}

func (c *counts) print(name string, all []can) {
	t := c.sharer.Totals()
	fmt.Printf("Image: `%s`. %d sites, %d of them with parameters. %d prologues of up to %d parameters, %d distinct.\n\n",
		name, c.sites, c.sites-c.bare, t.Prologues, prologue.MaxArgs, t.Distinct)
	fmt.Println("| instructions | of | total | mean | median | 90 % | 99 % | most |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	c.siteInsns.row("a site with parameters")
	c.insns[0].row("a prologue")
	for n, h := range c.insns[1:] {
		h.row(fmt.Sprintf("a prologue of %d", n+1))
	}
	fmt.Println("\n| helper calls | of | total | mean | median | 90 % | 99 % | most |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	c.siteCalls.row("a site with parameters")
	c.calls[0].row("a prologue")
	for n, h := range c.calls[1:] {
		h.row(fmt.Sprintf("a prologue of %d", n+1))
	}
	fmt.Printf("\nWith a prologue for each parameter there would be %d helper calls.\n", c.single)
	fmt.Println("\nBy what the kernel can do, a prologue on average. Rare instructions run only if a read faults, or if a load gives 0: then a")
	fmt.Println("helper is asked whether that is a fault. With loads, helper calls are those if all is 0.")
	fmt.Println("\n| kernel | instructions | rare | others | helper calls |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: |")
	for i := range c.kernels {
		k := &c.kernels[i]
		mean := func(n int) float64 { return float64(n) / float64(max(k.prologues, 1)) }
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.3f |\n", all[i].name, mean(k.insns), mean(k.rare), mean(k.insns-k.rare), mean(k.calls))
	}
	fmt.Println("\n| helper calls of a prologue | prologues | share |")
	fmt.Println("| ---: | ---: | ---: |")
	for n, count := range c.calls[0] {
		if count > 0 {
			fmt.Printf("| %d | %d | %.2f %% |\n", n, count, 100*float64(count)/float64(t.Prologues))
		}
	}
}
