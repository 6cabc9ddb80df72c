package plan_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestEvent reads events as programs write them, in both conventions.
func TestEvent(t *testing.T) {
	event := func(words ...uint64) []byte {
		var d []byte
		for _, w := range words {
			d = binary.NativeEndian.AppendUint64(d, w)
		}
		return d
	}
	for _, convention := range []prologue.Convention{prologue.ConventionRegisters, prologue.ConventionRecord} {
		p, err := plantest.Fixture(t, "run-gcc12-O2-dwarf5.exe", "mix key k", plan.Options{Convention: convention})
		if err != nil {
			t.Fatal(err)
		}
		const dispatched = 5 << 48 // a dispatched program's cookie has the prologue's number there
		e, err := p.Event(event(1|dispatched, 2, ^uint64(40), 0))
		if err != nil || e.Site != 1 || e.Again || e.Err != 2 || fmt.Sprint(e.Values) != "[-41 ?]" {
			t.Errorf("%v: %+v, %v", convention, e, err)
		}
		for _, c := range []struct {
			data []byte
			want string
		}{
			{nil, "an event of 0 bytes: it has 16"},
			{event(1, 0, 1), "an event of 24 bytes: at mix"},
			{event(2, 0, 1, 2), "an event of site 2, where the plan has no program"},
			{event(1<<32-1, 0, 1, 2), "an event of site 4294967295"},
		} {
			if _, err := p.Event(c.data); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v: %d bytes: %v, want %s", convention, len(c.data), err, c.want)
			}
		}
	}
}

// FuzzEvent: any bytes are an event of the plan, whose values print, or an error.
func FuzzEvent(f *testing.F) {
	var plans []*plan.Plan
	for _, d := range []struct {
		definition string
		convention prologue.Convention
	}{
		{"mix key k", prologue.ConventionRegisters}, {"* $params", prologue.ConventionRecord}, {"* $vars", prologue.ConventionRecord},
	} {
		p, err := plantest.Fixture(f, "run-gcc12-O2-dwarf5.exe", d.definition, plan.Options{Convention: d.convention})
		if err != nil {
			f.Fatal(err)
		}
		plans = append(plans, p)
	}
	f.Add(make([]byte, 32))
	f.Add([]byte(strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 40)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range plans {
			e, err := p.Event(data)
			if err != nil {
				continue
			}
			if e.Site < 0 || e.Site >= len(p.Sites) || len(e.Values) != len(p.Sites[e.Site].Args) {
				t.Fatalf("%d values at site %d", len(e.Values), e.Site)
			}
			for i, v := range e.Values {
				text, value := v.String(), v.Any()
				if v.Lost != (e.Err>>i&1 != 0) || v.Lost && (text != "?" || value != nil) {
					t.Fatalf("argument %d: lost %v, %q, %v", i, v.Lost, text, value)
				}
				if len(text) > 64*len(data)+64 {
					t.Fatalf("argument %d: %d bytes of %d", i, len(text), len(data))
				}
			}
		}
	})
}
