package guest_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// kinds are the kinds of locations that values must have been fetched from: in all kernels,
// and by architecture and whether it is Linux 6.1.
var kinds = []string{
	"register, view", "register, abi", "memory, view", "memory, later-view", "constant, view", "constant, later-view",
}

var moreKinds = map[string]map[bool][]string{
	"amd64": {
		true:  {"memory on the stack, view", "memory on the stack, later-view", "value, view", "value, later-view"},
		false: {"memory on the stack, view", "memory on the stack, later-view"},
	},
	"arm64": {true: {"value, later-view", "constant, constant"}},
}

// TestValues attaches definitions in live kernels, makes system calls with chosen values,
// and compares each fetched value: with KASLR all arguments are in records, without it they
// are in registers where they fit.
func TestValues(t *testing.T) {
	t.Parallel()
	for _, k := range kernels(t) {
		for _, boot := range []struct {
			kaslr      bool
			convention prologue.Convention
		}{{true, prologue.ConventionRecord}, {false, prologue.ConventionAuto}} {
			t.Run(fmt.Sprintf("%s/kaslr=%v", k.Release, boot.kaslr), func(t *testing.T) {
				t.Parallel()
				img := testenv.Open(t, k.Vmlinux)
				// A kernel without kprobe.multi refuses programs for it.
				o := plan.Options{Convention: boot.convention}
				o.Target.KprobeMulti = k.hasMulti()
				plans, task := valuesTask(t, k, img, o)
				task.KASLR = boot.kaslr
				start := time.Now()
				r, err := k.Boot(t.Context(), task)
				if err != nil {
					t.Fatal(err)
				}
				if !boot.kaslr && r.Done.Slide != 0 {
					t.Errorf("without KASLR the kernel is %#x bytes from its link-time addresses", r.Done.Slide)
				}
				if r.Done.Lost != 0 {
					t.Errorf("%d hits were lost", r.Done.Lost)
				}
				if r.Done.Multi != k.hasMulti() {
					t.Errorf("the kernel has kprobe.multi: %v", r.Done.Multi)
				}
				checkResults(t, r)
				checkRefused(t, img, plans, r)
				n := checkHits(t, k, plans, r)
				for _, kind := range slices.Concat(kinds, moreKinds[k.GOARCH][k.old()]) {
					if n.kinds[kind] == 0 {
						t.Errorf("no value was in a location of the kind %q", kind)
					}
				}
				t.Log(n.kinds)
				t.Logf("slide %#x, %d plans, %d hits; %d values compared at %d pairs of definition and site (%d inlined, %d by kprobe.multi; %d in registers); %v",
					r.Done.Slide, len(plans), len(r.Hits), n.values, n.pairs, n.inlined, n.multi, n.registers, time.Since(start).Round(time.Millisecond))
				if n.pairs < 60 || n.inlined < 20 || k.hasMulti() && n.multi < 20 || boot.convention == prologue.ConventionAuto && n.registers < 20 {
					t.Errorf("only %d pairs of definition and site were hit, %d of them inlined, %d by kprobe.multi, %d in registers", n.pairs, n.inlined, n.multi, n.registers)
				}
			})
		}
	}
}

// testKernel is a kernel with what tests know about it.
type testKernel struct{ *guest.Kernel }

// static is the environment in which Go builds programs for the guest, which has no libraries.
func (k testKernel) static() []string { return []string{"CGO_ENABLED=0", "GOARCH=" + k.GOARCH} }

// hasMulti reports whether the kernel has kprobe.multi: Debian's set CONFIG_FPROBE since
// 6.3.
func (k testKernel) hasMulti() bool { return !k.old() }

// version is the kernel's version. Its last number is not of interest.
func (k testKernel) version() version {
	var major, minor int
	if _, err := fmt.Sscanf(k.Release, "%d.%d.", &major, &minor); err != nil {
		panic(err) // a release begins with three numbers
	}
	return linux(major, minor)
}

// old reports whether the kernel is Linux 6.1.
func (k testKernel) old() bool { return k.version() == linux(6, 1) }

// eachKernel runs a test on all kernels, in parallel.
func eachKernel(t *testing.T, test func(*testing.T, testKernel)) {
	t.Helper()
	onKernels(t, kernels(t), test)
}

// onKernels runs a test on some kernels, in parallel.
func onKernels(t *testing.T, ks []testKernel, test func(*testing.T, testKernel)) {
	t.Helper()
	for _, k := range ks {
		t.Run(k.Release, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// someOf returns all of some kernels with GUESTS_FULL=1, and else one of them, by GUEST_SEED: for what takes long, and is about the tool and the
// emulated machine rather than about a kernel's values.
func someOf(t *testing.T, all []testKernel) []testKernel {
	t.Helper()
	seed := setting(t, "GUEST_SEED", uint64(time.Now().Unix()))
	if full() || len(all) < 2 {
		return all
	}
	t.Logf("GUEST_SEED=%d", seed)
	one := int(seed % uint64(len(all)))
	return all[one : one+1]
}

func kernels(t *testing.T) (out []testKernel) {
	t.Helper()
	if testing.Short() {
		t.Skip("boots kernels")
	}
	if raced.On {
		t.Skip("the race detector slows the emulator down and does not see the guest: run without -race")
	}
	for _, m := range guest.Machines {
		if full() {
			m.Folders = slices.Concat(m.Folders, m.More)
		}
		for _, k := range guest.FindKernels(t, m) {
			out = append(out, testKernel{k})
		}
	}
	return out
}

// definitions returns the marker's definition and those of valueTests that apply to a
// kernel, each once.
func definitions(k testKernel) []definition {
	out := []definition{{def: guest.Marker}}
	for _, tt := range valueTests {
		for _, w := range tt.wants {
			if d := (definition{w.def, w.in}); w.isOf(k) && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

type definition struct{ def, in string }

func valuesTask(t *testing.T, k testKernel, img *dwarfloc.Image, o plan.Options) ([]*plan.Plan, *guest.Task) {
	t.Helper()
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	var plans []*plan.Plan
	task := &guest.Task{Limit: 3 * time.Minute}
	for _, d := range definitions(k) {
		def, err := probe.Parse(d.def)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(context.Background(), img, def, o)
		if err != nil {
			t.Error(err)
			continue
		}
		if d.in != "" {
			p.Sites = slices.DeleteFunc(p.Sites, func(s plan.Site) bool { return s.Symbol != d.in })
		}
		if !slices.ContainsFunc(p.Sites, func(s plan.Site) bool { return table.At(s.Addr) == attachable.CauseNone }) {
			t.Errorf("%q in %q: no probe is possible at any of %d sites", d.def, d.in, len(p.Sites))
			continue
		}
		packed, err := guest.Pack(p)
		if err != nil {
			t.Fatal(err)
		}
		plans, task.Plans = append(plans, p), append(task.Plans, packed)
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, tt := range valueTests {
		task.Calls = append(task.Calls, tt.call)
	}
	return plans, task
}

// checkResults checks what the calls returned: values that the kernel rejected prove
// nothing.
func checkResults(t *testing.T, r *guest.Report) {
	t.Helper()
	if len(r.Child.Results) != len(valueTests) {
		t.Fatalf("%d calls returned, of %d", len(r.Child.Results), len(valueTests))
	}
	for i, tt := range valueTests {
		got := r.Child.Results[i]
		if ok := got == tt.returns || tt.returns == anything && got >= 0; !ok {
			t.Errorf("call %d, %s, returned %d", i, tt.call.Name, got)
		}
	}
}

// checkRefused checks that the kernel refuses exactly the sites that package attachable
// predicts.
func checkRefused(t *testing.T, img *dwarfloc.Image, plans []*plan.Plan, r *guest.Report) {
	t.Helper()
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	refused := make(map[[2]int]string)
	for _, x := range r.Refused {
		refused[[2]int{x.Plan, x.Site}] = x.Text
	}
	for i, p := range plans {
		for j := range p.Sites {
			text, no := refused[[2]int{i, j}]
			if cause := table.At(p.Sites[j].Addr); no != (cause != attachable.CauseNone) {
				t.Errorf("%v: the kernel's answer is %q, predicted %q", p.Sites[j], text, cause)
			}
		}
	}
}

type counts struct {
	pairs, inlined, values int // pairs of definition and site
	multi, registers       int // pairs by kprobe.multi, and in the registers convention
	kinds                  map[string]int
}

// checkHits compares the hits of each call with the wanted ones. Each hit of a definition
// must have one of its wanted values, and each of these must occur.
func checkHits(t *testing.T, k testKernel, plans []*plan.Plan, r *guest.Report) counts {
	t.Helper()
	n := counts{kinds: make(map[string]int)}
	pairs := make(map[[2]int]bool)
	call := -1 // the current one
	defs := definitions(k)
	seen := make(map[string]bool)
	other := 0
	for i := range r.Hits {
		h := &r.Hits[i]
		if h.Task != r.Child.Task {
			other++
			continue
		}
		p := plans[h.Plan]
		s := &p.Sites[h.Site]
		values := make([]plan.Value, len(s.Args))
		for j := range values {
			values[j] = plan.Value{Argument: &s.Args[j], Lost: h.Err&(1<<j) != 0, Data: h.Data[j]}
		}
		if h.Plan == 0 {
			if call++; binary.NativeEndian.Uint64(values[0].Data) != uint64(guest.FirstMark+call) {
				t.Fatalf("the marker before call %d has the value %v", call, values[0].String())
			}
			continue
		}
		if call < 0 || call >= len(valueTests) {
			continue
		}
		at := slices.IndexFunc(valueTests[call].wants, func(w want) bool { return w.isOf(k) && definition{w.def, w.in} == defs[h.Plan] })
		if at < 0 {
			continue
		}
		w := &valueTests[call].wants[at]
		which := slices.IndexFunc(w.hits, func(text string) bool { return same(text, values) })
		if which < 0 {
			t.Errorf("call %d, %s: %v: got %s, want %s", call, valueTests[call].call.Name, s, printed(values), strings.Join(w.hits, " or "))
			continue
		}
		seen[fmt.Sprint(call, at, which)] = true
		for j := range values {
			if values[j].Fetched() {
				n.values++
				n.kinds[describe(s.Image.Arch(), &values[j])]++
			}
		}
		if key := [2]int{h.Plan, h.Site}; !pairs[key] && slices.ContainsFunc(values, func(v plan.Value) bool { return v.Fetched() }) {
			pairs[key] = true
			n.pairs++
			if s.Kind == dwarfloc.SiteInline {
				n.inlined++
			}
			if p.Instances[s.Instance].Multi {
				n.multi++
			}
			if p.Convention == prologue.ConventionRegisters {
				n.registers++
			}
		}
	}
	if call != len(valueTests) {
		t.Errorf("%d markers were seen, of %d", call+1, len(valueTests)+1)
	}
	for i, tt := range valueTests {
		for at, w := range tt.wants {
			if !w.isOf(k) {
				continue
			}
			for which, text := range w.hits {
				if !seen[fmt.Sprint(i, at, which)] {
					t.Errorf("call %d, %s: no hit of %q with %s", i, tt.call.Name, w.def, text)
				}
			}
		}
	}
	if other > 0 {
		t.Logf("%d hits of the child's other threads", other)
	}
	return n
}

// describe describes the location of a value: its kind, what it is made of, and the rule
// that chose it.
func describe(a *arch.Arch, v *plan.Value) string {
	l := &v.Variable.Loc
	text := fmt.Sprintf("%v, %v", l.Kind, l.Rule)
	l.Exprs(func(e *loc.Expr) {
		e.Walk(func(e *loc.Expr) {
			if e.Op == ops.Reg && e.K == uint64(a.SP) {
				text = fmt.Sprintf("%v on the stack, %v", l.Kind, l.Rule)
			}
		})
	})
	return text
}

// same compares values with a text of names and values. An argument that the plan does not
// fetch at a site may have any value; the others must have been fetched.
func same(text string, values []plan.Value) bool {
	for i := range values {
		v := &values[i]
		rest, ok := strings.CutPrefix(text, v.Name+"=")
		if !ok || v.Lost == v.Fetched() {
			return false
		}
		end := len(rest)
		if i+1 < len(values) {
			if end = strings.Index(rest, " "+values[i+1].Name+"="); end < 0 {
				return false
			}
		}
		if v.Fetched() && rest[:end] != v.String() {
			return false
		}
		text = strings.TrimPrefix(rest[end:], " ")
	}
	return text == ""
}

func printed(values []plan.Value) string {
	var out []string
	for i := range values {
		out = append(out, values[i].Name+"="+values[i].String())
	}
	return strings.Join(out, " ")
}
