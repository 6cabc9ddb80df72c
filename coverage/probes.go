package coverage

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/mapping"
	"github.com/bpfprologue/bpfprologue/internal/order"
	"github.com/bpfprologue/bpfprologue/internal/place"
)

// Probes are totals of probes at inlined sites: where a kernel accepts one, and how the kernel runs
// it. See attachable.Method.
type Probes struct {
	Addresses  int            `json:"addresses"`  // of inlined sites; several sites may have one
	Attachable int            `json:"attachable"` // of them, those at which the kernel accepts a probe
	Refused    map[string]int `json:"refused"`    // the others, by cause
	Methods    map[string]int `json:"methods"`    // the attachable ones, by how the kernel runs the probe
}

// addresses are those of sites, each as the distance from the one before: there are hundreds of thousands.
type addresses struct {
	n      int
	last   uint64
	packed []byte
}

func (a *addresses) add(addr uint64) {
	if a.n == 0 || addr != a.last {
		a.packed = binary.AppendVarint(a.packed, int64(addr-a.last))
		a.last = addr
		a.n++
	}
}

// distinct returns all addresses, sorted: so the questions about one function follow each other.
func distinct(of []addresses) []uint64 {
	n := 0
	for i := range of {
		n += of[i].n
	}
	out := make([]uint64, 0, n)
	for i := range of {
		addr := uint64(0)
		for packed := of[i].packed; len(packed) > 0; {
			d, size := binary.Varint(packed)
			addr, packed = addr+uint64(d), packed[size:]
			out = append(out, addr)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// measureProbes predicts a probe at each of some addresses. It returns nil for relocatable files.
func measureProbes(ctx context.Context, img *dwarfloc.Image, sites []addresses) (*Probes, error) {
	if inside.File(img).IsRelocatable() {
		return nil, nil
	}
	predict, err := predictor(img)
	if err != nil {
		return nil, err
	}
	addrs := distinct(sites)
	n := runtime.GOMAXPROCS(0)
	out := &Probes{Addresses: len(addrs), Refused: make(map[string]int), Methods: make(map[string]int)}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for part := range slices.Chunk(addrs, max(1, (len(addrs)+n-1)/n)) {
		wait.Go(func() {
			var causes [256]int
			var methods [256]int
			err := mapping.Work(func() error {
				for _, addr := range part {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					c, m := predict(addr)
					causes[c]++
					methods[m]++
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			for i, n := range causes {
				if c := attachable.Cause(i); n > 0 && c != attachable.CauseNone {
					out.Refused[c.String()] += n
				}
			}
			for i, n := range methods {
				if m := attachable.Method(i); n > 0 && m != attachable.MethodNone {
					out.Methods[m.String()] += n
				}
			}
		})
	}
	wait.Wait()
	if err := cmp.Or(failed, img.Changed()); err != nil {
		return nil, err
	}
	out.Attachable = out.Addresses
	for _, n := range out.Refused {
		out.Attachable -= n
	}
	return out, nil
}

// predictor returns the predictions for an image's kind of probes.
func predictor(img *dwarfloc.Image) (func(addr uint64) (attachable.Cause, attachable.Method), error) {
	kernel, err := place.IsKernel(img)
	if err != nil {
		return nil, err
	}
	if !kernel {
		return func(addr uint64) (attachable.Cause, attachable.Method) {
			return attachable.CauseNone, attachable.UprobeMethod(img, addr)
		}, nil
	}
	table, err := attachable.New(img)
	if err != nil {
		return nil, err
	}
	return func(addr uint64) (attachable.Cause, attachable.Method) {
		m := table.Method(addr)
		if m != attachable.MethodNone {
			return attachable.CauseNone, m
		}
		return table.At(addr), m
	}, nil
}

func (p *Probes) print(w io.Writer) {
	fmt.Fprintf(w, "\nprobes at inlined sites: %d addresses\n\n", p.Addresses)
	line := func(name string, part, whole int) {
		fmt.Fprintf(w, "  %-26s %s %8d  %5.1f %%\n", name, bar(part, whole), part, percent(part, whole))
	}
	line("attachable", p.Attachable, p.Addresses)
	fmt.Fprintln(w, " attachable, by how the kernel runs the probe")
	for _, name := range order.LargestFirst(p.Methods) {
		line(name, p.Methods[name], p.Attachable)
	}
}

// figures returns the totals by name.
func (p *Probes) figures() map[string]int {
	m := map[string]int{"addresses": p.Addresses, "attachable": p.Attachable}
	for group, g := range map[string]map[string]int{"refused": p.Refused, "methods": p.Methods} {
		for name, n := range g {
			m[group+"."+name] = n
		}
	}
	return m
}
