package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/internal/mapview"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/recording"
	"github.com/bpfprologue/bpfprologue/stacks"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// objectOutput prints what the programs of an object file report, and their maps.
type objectOutput struct {
	mu     sync.Mutex // hits and maps come from two goroutines
	w      io.Writer
	show   func(*recording.Hit) error
	names  *stacks.Names
	json   bool
	spec   *ebpf.CollectionSpec
	loaded map[string]*ebpf.Map
}

// run prints hits, if there is a sampler, and maps at each interval, until the context ends; then the
// maps.
func (o *objectOutput) run(ctx context.Context, sampler *tracer.Session, interval time.Duration) error {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if interval > 0 {
		wg.Go(func() {
			t := time.NewTicker(interval)
			defer t.Stop()
			for {
				select {
				case <-t.C:
					if err := o.maps(); err != nil {
						failed = err
						cancel() // nothing is shown any more
						return
					}
				case <-stop:
					return
				}
			}
		})
	}
	var err error
	if sampler == nil {
		<-ctx.Done()
	} else {
		hits := 0
		source := recording.Source{Names: o.names}
		err = sampler.Run(ctx, func(h *tracer.Hit) error {
			hits++
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.show(source.Hit(h))
		})
		not, notErr := sampler.Unreported()
		terminal.Fprintf(stderr, "%s, %d lost%s\n", count(hits, "hit"), not.Lost, limitedText(not.Limited))
		err = errors.Join(err, notErr)
	}
	close(stop)
	wg.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return o.maps()
}

// maps prints what is in the object's maps.
func (o *objectOutput) maps() error {
	all, err := mapview.Read(o.spec, o.loaded)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out := bufio.NewWriter(o.w)
	for i := range all {
		if o.json {
			if err := printMapJSON(out, &all[i]); err != nil {
				return err
			}
		} else {
			printMap(out, &all[i])
		}
	}
	return out.Flush()
}

// printMap prints a map: its entries, and the histograms in them.
func printMap(w io.Writer, m *mapview.Map) {
	switch {
	case m.Unread != "":
		terminal.Fprintf(w, "%s: %s\n", m.Name, m.Unread)
		return
	case m.Variables:
		terminal.Fprintf(w, "%s: %s\n", m.Name, count(len(m.Entries), "variable"))
		for _, e := range m.Entries {
			name, _ := e.Key.Scalar.(string)
			terminal.Fprintf(w, "  %s = %v\n", name, e.Value)
		}
		return
	}
	n := strconv.Itoa(len(m.Entries)) + " entries"
	if len(m.Entries) == 1 {
		n = "1 entry"
	}
	terminal.Fprintf(w, "%s: %s\n", m.Name, n)
	if m.Slots {
		var texts []string
		var counts []float64
		for _, e := range m.Entries {
			n, _ := e.Value.Number()
			texts, counts = append(texts, e.Key.String()), append(counts, n)
		}
		printBars(w, "", texts, counts)
		return
	}
	for _, e := range m.Entries {
		name, slots, rest := e.Value.Histogram()
		terminal.Fprintf(w, "  %v: %v\n", e.Key, rest)
		first, last := len(slots), 0
		for i, s := range slots {
			if n, _ := s.Number(); n != 0 {
				first, last = min(first, i), i+1
			}
		}
		var texts []string
		var counts []float64
		for i := first; i < last; i++ {
			n, _ := slots[i].Number()
			texts, counts = append(texts, strconv.Itoa(i)), append(counts, n)
		}
		if len(texts) > 0 {
			terminal.Fprintf(w, "    %s\n", name)
			printBars(w, "    ", texts, counts)
		}
	}
}

// printMapJSON prints a map as an object. docs/json.md documents the fields.
func printMapJSON(w io.Writer, m *mapview.Map) error {
	type entry struct {
		Key   *mapview.Value `json:"key"`
		Value *mapview.Value `json:"value"`
	}
	out := struct {
		Map       string  `json:"map"`
		Type      string  `json:"type"`
		Variables bool    `json:"variables,omitempty"`
		Entries   []entry `json:"entries"`
		Unread    string  `json:"unread,omitempty"`
	}{m.Name, m.Type.String(), m.Variables, []entry{}, m.Unread}
	for _, e := range m.Entries {
		out.Entries = append(out.Entries, entry(e))
	}
	return printObject(w, out)
}
