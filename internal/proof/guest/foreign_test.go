package guest_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// plainCalls are the calls of valueTests that are made alike on all architectures: none has an argument of
// 64 bits, which machines of 32 bits pass in two, or memory with pointers.
var plainCalls = []string{
	"openat", "dup3", "fcntl", "write", "lseek", "read", "fchmod", "fchown", "close", "mkdirat", "symlinkat", "readlinkat",
	"unlinkat", "memfd_create", "eventfd2", "socket", "listen", "kill",
}

// TestForeign attaches definitions in live kernels for the other architectures, makes system calls with chosen
// values, and compares each fetched value.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, k := range foreignKernels(t) {
		t.Run(k.Flavour, func(t *testing.T) {
			t.Parallel()
			for _, kaslr := range []bool{true, false} {
				if kaslr && k.GOARCH != "386" {
					continue // of these kernels only this one has it by default
				}
				t.Run(fmt.Sprintf("%s/kaslr=%v", k.Release, kaslr), func(t *testing.T) { foreignValues(t, k, kaslr) })
			}
		})
	}
}

// TestForeignPrediction is TestPrediction for architectures whose instructions are decoded, with fewer sites.
func TestForeignPrediction(t *testing.T) {
	t.Parallel()
	for _, k := range foreignKernels(t) {
		t.Run(k.Flavour, func(t *testing.T) {
			t.Parallel()
			if img := testenv.Open(t, k.Vmlinux); insn.For(inside.File(img).Instructions()) == nil {
				t.Skipf("instructions of %s are not decoded", inside.File(img).Instructions())
			}
			predict(t, testKernel{k}, setting(t, "GUEST_SITES", either(400, 150)))
		})
	}
}

// full reports whether everything is to be tried in every kernel: without GUESTS_FULL=1, what takes longest is
// tried in one of them, or at fewer sites.
func full() bool { return os.Getenv("GUESTS_FULL") == "1" }

func either(all, few uint64) uint64 {
	if full() {
		return all
	}
	return few
}

// foreignKernels are those of guest.Foreign to boot.
func foreignKernels(t *testing.T) (out []*guest.Kernel) {
	if testing.Short() || raced.On {
		t.Skip("boots kernels")
	}
	machines := guest.Foreign
	if !full() {
		machines = machines[:1] // the one with the other byte order: the others are downloads of up to a gigabyte each
	}
	for _, m := range machines {
		out = append(out, guest.FindKernels(t, m)...)
	}
	return out
}

// hangs reports whether the emulated machine may hang if there is a probe at an address: QEMU 7.2 does at some
// branches of s390x, but not at the one at a function's beginning, which is ftrace's.
func hangs(img *dwarfloc.Image, addr uint64) bool {
	if img.Arch().Name != "s390x" {
		return false
	}
	code, err := inside.File(img).Bytes(addr, 2)
	if err != nil {
		return true
	}
	switch low := code[1] & 0xf; code[0] { // z/Architecture Principles of Operation, appendix B
	case 0x05, 0x06, 0x07, 0x0a, 0x0c, 0x0d, 0x45, 0x46, 0x47, 0x4d, 0x84, 0x85, 0x86, 0x87, 0xb2, 0xcc, 0xe3, 0xeb, 0xec:
		return true
	case 0xa7:
		return low >= 4 && low <= 7
	case 0xc0, 0xc6:
		return low != 1 && low != 0 // LARL and LGFI are not
	}
	return false
}

func foreignValues(t *testing.T, k *guest.Kernel, kaslr bool) {
	img := testenv.Open(t, k.Vmlinux)
	kernel := testKernel{k}
	task := &guest.Task{Limit: 2 * time.Minute, KASLR: kaslr}
	var plans []*plan.Plan
	var defs []definition
	add := func(d definition) {
		if slices.Contains(defs, d) {
			return
		}
		def, err := probe.Parse(d.def)
		if err != nil {
			t.Fatal(err)
		}
		convention := prologue.ConventionRecord
		if !kaslr {
			convention = prologue.ConventionAuto
		}
		p, err := plan.New(context.Background(), img, def, plan.Options{Convention: convention})
		if err != nil {
			t.Logf("%q: %v", d.def, err) // the function is not in this kernel
			return
		}
		if p.Sites = slices.DeleteFunc(p.Sites, func(s plan.Site) bool {
			return d.in != "" && s.Symbol != d.in || d.def != guest.Marker && (s.Kind != dwarfloc.SiteEntry || s.Offset != 0) && hangs(img, s.Addr)
		}); len(p.Sites) == 0 {
			return
		}
		packed, err := guest.Pack(p)
		if err != nil {
			t.Fatal(err)
		}
		plans, defs, task.Plans = append(plans, p), append(defs, d), append(task.Plans, packed)
	}
	add(definition{def: guest.Marker})
	var tests []int // of valueTests, for each call
	for i := range valueTests {
		tt := &valueTests[i]
		if !slices.Contains(plainCalls, tt.call.Name) {
			continue
		}
		c := tt.call
		c.Args = slices.Clone(c.Args)
		for j := range c.Args {
			if m := c.Args[j].Memory; inside.File(img).BigEndian() && len(m) == 8 {
				c.Args[j].Memory = slices.Clone(m) // a number
				slices.Reverse(c.Args[j].Memory)
			}
			// Results are counted by the calls made here.
			if r := c.Args[j].Result; r > 0 {
				c.Args[j].Result = slices.Index(tests, r-1) + 1
			}
		}
		tests, task.Calls = append(tests, i), append(task.Calls, c)
		for _, w := range tt.wants {
			if w.isOf(kernel) {
				add(definition{w.def, w.in})
			}
		}
	}
	start := time.Now()
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	if !kaslr && r.Done.Slide != 0 || kaslr && r.Done.Slide == 0 {
		t.Errorf("the kernel is %#x bytes from its link-time addresses, KASLR %v", r.Done.Slide, kaslr)
	}
	if r.Done.Lost != 0 {
		t.Errorf("%d hits were lost", r.Done.Lost)
	}
	for i, got := range r.Child.Results {
		if tt := &valueTests[tests[i]]; got != tt.returns && (tt.returns != anything || got < 0) {
			t.Errorf("call %d, %s, returned %d", i, tt.call.Name, got)
		}
	}
	call, values := -1, 0
	pairs, seen := make(map[[2]int]bool), make(map[string]bool)
	inlined := 0
	for i := range r.Hits {
		h := &r.Hits[i]
		if h.Task != r.Child.Task {
			continue
		}
		s := &plans[h.Plan].Sites[h.Site]
		got := make([]plan.Value, len(s.Args))
		for j := range got {
			// Values are printed where they are fetched, in the order of bytes of that machine. This one
			// is little-endian.
			if inside.File(img).BigEndian() && s.Args[j].Kind == prologue.KindScalar {
				slices.Reverse(h.Data[j])
			}
			got[j] = plan.Value{Argument: &s.Args[j], Lost: h.Err&(1<<j) != 0, Data: h.Data[j]}
		}
		if h.Plan == 0 {
			if call++; binary.LittleEndian.Uint64(h.Data[0]) != uint64(guest.FirstMark+call) {
				t.Fatalf("the marker before call %d has the value %v", call, h.Data[0])
			}
			continue
		}
		if call < 0 || call >= len(tests) {
			continue
		}
		tt := &valueTests[tests[call]]
		at := slices.IndexFunc(tt.wants, func(w want) bool { return w.isOf(kernel) && definition{w.def, w.in} == defs[h.Plan] })
		if at < 0 {
			continue
		}
		if !slices.ContainsFunc(tt.wants[at].hits, func(text string) bool { return same(text, got) }) {
			if slices.ContainsFunc(got, func(v plan.Value) bool { return v.Lost }) {
				// A read faulted. Without a decoder of instructions it is not seen where a slot of the stack
				// is written only later, as that of mode_strip_umask's dir in armhf's do_mkdirat.
				t.Logf("call %d, %s: %v: got %s", call, tt.call.Name, s, printed(got))
				continue
			}
			t.Errorf("call %d, %s: %v: got %s, want %s", call, tt.call.Name, s, printed(got), strings.Join(tt.wants[at].hits, " or "))
			continue
		}
		seen[fmt.Sprint(tests[call], at)] = true
		for j := range got {
			if got[j].Fetched() {
				values++
			}
		}
		if key := [2]int{h.Plan, h.Site}; !pairs[key] {
			pairs[key] = true
			if s.Kind == dwarfloc.SiteInline {
				inlined++
			}
		}
	}
	if call != len(tests) {
		t.Errorf("%d markers were seen, of %d", call+1, len(tests)+1)
	}
	for i, test := range tests {
		for at, w := range valueTests[test].wants {
			if w.isOf(kernel) && slices.Contains(defs, definition{w.def, w.in}) && !seen[fmt.Sprint(test, at)] {
				t.Logf("call %d, %s: no hit of %q", i, valueTests[test].call.Name, w.def)
			}
		}
	}
	t.Logf("slide %#x, %d plans, %d sites refused, %d hits; %d values compared at %d pairs of definition and site (%d inlined); %v",
		r.Done.Slide, len(plans), len(r.Refused), len(r.Hits), values, len(pairs), inlined, time.Since(start).Round(time.Millisecond))
	if len(pairs) < 25 || inlined < 3 {
		t.Errorf("only %d pairs of definition and site were hit, %d of them inlined", len(pairs), inlined)
	}
}
