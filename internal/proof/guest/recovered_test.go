package guest_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// recovered is a definition of a parameter that debug information has lost at some sites, and what it must be at each hit of them. A lock that
// was found at a wrong address would hardly be free where it is taken, and taken where it is left: the guest has one processor.
type recovered struct {
	def   string
	rules []loc.Rule
	is    func(v *plan.Value, img *dwarfloc.Image, slide uint64) bool
	arch  string  // only kernels for this one, or "" for all
	last  version // of the kernels that have it, or 0
	needs bool    // it is hit
	few   bool    // in folders of the scheduler alone
}

func printsAs(texts ...string) func(*plan.Value, *dwarfloc.Image, uint64) bool {
	return func(v *plan.Value, _ *dwarfloc.Image, _ uint64) bool { return slices.Contains(texts, v.String()) }
}

func positive(v *plan.Value, _ *dwarfloc.Image, _ uint64) bool {
	return int32(binary.LittleEndian.Uint32(v.Data)) > 0
}

// oneOf is for a value that is one of the symbols' addresses.
func oneOf(names ...string) func(*plan.Value, *dwarfloc.Image, uint64) bool {
	return func(v *plan.Value, img *dwarfloc.Image, slide uint64) bool {
		at, err := inside.File(img).SymbolAddresses(names...)
		if err != nil {
			return false
		}
		for _, addr := range at {
			if addr == binary.LittleEndian.Uint64(v.Data)-slide {
				return true
			}
		}
		return false
	}
}

var recoveredTests = []recovered{
	{def: "spin_lock lock->rlock.raw_lock.val.counter", is: printsAs("0")},
	{def: "spin_lock_irq lock->rlock.raw_lock.val.counter", is: printsAs("0")},
	{def: "__raw_spin_lock lock->raw_lock.val.counter", is: printsAs("0")},
	{def: "do_raw_spin_lock lock->raw_lock.val.counter", is: printsAs("0")},
	{def: "spin_unlock lock->rlock.raw_lock.val.counter", is: printsAs("1")},
	{def: "spin_unlock_irq lock->rlock.raw_lock.val.counter", is: printsAs("1")},
	{def: "spin_unlock_irqrestore lock->rlock.raw_lock.val.counter", is: printsAs("1")},
	{def: "spin_unlock_bh lock->rlock.raw_lock.val.counter", is: printsAs("1")},
	{def: "do_raw_spin_unlock lock->raw_lock.val.counter", is: printsAs("1")},
	{def: "inode_lock inode->i_rwsem.count.counter", is: printsAs("0")},
	{def: "inode_unlock inode->i_rwsem.count.counter", is: printsAs("1")},
	{def: "test_tsk_thread_flag tsk->comm:string", is: printsAs(`"init"`), needs: true},
	{def: "task_sigpending p->comm:string", is: printsAs(`"init"`)},
	// TIF_SIGPENDING, TIF_NOTIFY_SIGNAL and TIF_ADDR32 (arch/*/include/asm/thread_info.h).
	{def: "test_tsk_thread_flag flag", is: printsAs("2", "17"), arch: "amd64", needs: true},
	{def: "test_ti_thread_flag flag", is: printsAs("2", "3", "17", "29"), arch: "amd64", needs: true},
	{def: "test_tsk_thread_flag flag", is: printsAs("0", "6"), arch: "arm64"},
	{def: "test_ti_thread_flag flag", is: printsAs("0", "1", "6", "22"), arch: "arm64"},
	{def: "cpumask_test_cpu cpumask", is: oneOf("__cpu_online_mask", "__cpu_active_mask", "__cpu_possible_mask", "__cpu_present_mask", "__cpu_dying_mask"), few: true},
	{def: "kref_put release", is: func(v *plan.Value, img *dwarfloc.Image, slide uint64) bool {
		s := inside.File(img).SymbolAt(binary.LittleEndian.Uint64(v.Data)-slide, "")
		return s != nil && (strings.Contains(s.Name, "release") || strings.Contains(s.Name, "free") || strings.Contains(s.Name, "destroy"))
	}},
	{def: "put_page_testzero page->_refcount.counter", is: positive},
	{def: "folio_put folio->_refcount.counter", is: positive},
	{def: "folio_get folio->_refcount.counter", is: positive},
	{def: "page_ref_inc page->_refcount.counter", is: positive},
	{def: "kref_put kref->refcount.refs.counter", is: positive},
	{def: "kfree_skb skb->users.refs.counter", is: positive},
	{def: "msgctl_info msqid", rules: []loc.Rule{rule.Caller}, is: printsAs("77"), last: linux(6, 1), needs: true},
}

// recoveredCalls are made besides those of valueTests.
var recoveredCalls = []guest.Call{
	call("msgctl", number(77), number(12), memory(256)), // MSG_INFO
	// do_poll asks whether a signal waits, however short it may poll. Elsewhere that is asked when something is waited for, and whether
	// that happens is chance.
	call("ppoll", number(0), number(0), words(0, 0), number(0), number(0)),
}

// TestRecovered: in live kernels, what debug information has lost and other evidence says is what it must be.
func TestRecovered(t *testing.T) {
	t.Parallel()
	const least = 30 // sites with a hit
	for _, k := range kernels(t) {
		for _, kaslr := range []bool{true, false} {
			if !kaslr && !full() {
				continue
			}
			t.Run(fmt.Sprintf("%s/kaslr=%v", k.Release, kaslr), func(t *testing.T) {
				t.Parallel()
				testRecovered(t, k, kaslr, least)
			})
		}
	}
}

// reached reports whether the calls are likely to come to a site: to attach all takes minutes.
func reached(s *plan.Site, few bool) bool {
	folders := []string{"fs/", "ipc/", "kernel/", "lib/", "mm/"}
	if few {
		folders = []string{"kernel/sched/", "kernel/rcu/"}
	}
	file := s.CallFile
	for _, c := range s.Callers {
		if c.CallFile != "" {
			file = c.CallFile
		}
	}
	return s.Kind == dwarfloc.SiteEntry || slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

func testRecovered(t *testing.T, k testKernel, kaslr bool, least int) {
	img := testenv.Open(t, k.Vmlinux)
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	var o plan.Options
	o.Target.KprobeMulti = k.hasMulti()
	task := &guest.Task{KASLR: kaslr, Limit: 5 * time.Minute, Calls: recoveredCalls}
	var plans []*plan.Plan
	tests := []*recovered{nil}
	add := func(text string, keeps func(s *plan.Site) bool) bool {
		def, err := probe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(t.Context(), img, def, o)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		p.Sites = slices.DeleteFunc(p.Sites, func(s plan.Site) bool { return !keeps(&s) })
		if len(p.Sites) == 0 {
			return false
		}
		packed, err := guest.Pack(p)
		if err != nil {
			t.Fatal(err)
		}
		plans, task.Plans = append(plans, p), append(task.Plans, packed)
		return true
	}
	add(guest.Marker, func(*plan.Site) bool { return true })
	for i := range recoveredTests {
		x := &recoveredTests[i]
		if x.arch != "" && x.arch != k.GOARCH || x.last != 0 && k.version() > x.last {
			continue
		}
		rules := x.rules
		if rules == nil {
			rules = []loc.Rule{rule.Operand, rule.Call, rule.Member}
		}
		if add(x.def, func(s *plan.Site) bool {
			return table.At(s.Addr) == attachable.CauseNone && reached(s, x.few) && slices.Contains(rules, s.Args[0].Variable.Loc.Rule)
		}) {
			tests = append(tests, x)
		} else if x.needs {
			t.Errorf("%s: nothing was recovered", x.def)
		}
	}
	for _, tt := range valueTests {
		task.Calls = append(task.Calls, tt.call)
	}
	// Results of calls count from the first one.
	for i := range task.Calls[len(recoveredCalls):] {
		c := &task.Calls[len(recoveredCalls)+i]
		c.Args = slices.Clone(c.Args)
		for j := range c.Args {
			if c.Args[j].Result > 0 {
				c.Args[j].Result += len(recoveredCalls)
			}
		}
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	pairs, hits := make(map[[2]int]bool), make(map[int]int)
	for i := range r.Hits {
		h := &r.Hits[i]
		x := tests[h.Plan]
		if x == nil || strings.Contains(x.def, "comm") && h.Task != r.Child.Task {
			continue
		}
		s := &plans[h.Plan].Sites[h.Site]
		v := plan.Value{Argument: &s.Args[0], Lost: h.Err&1 != 0, Data: h.Data[0]}
		if v.Lost || !x.is(&v, img, r.Done.Slide) {
			t.Errorf("%s: %v, by rule %v (%s): it is %s", x.def, s, s.Args[0].Variable.Loc.Rule, s.Args[0].Variable.Because, v.String())
			continue
		}
		pairs[[2]int{h.Plan, h.Site}] = true
		hits[h.Plan]++
	}
	for i, x := range tests {
		if x == nil {
			continue
		}
		sites := 0
		for at := range pairs {
			if at[0] == i {
				sites++
			}
		}
		t.Logf("%s: %d hits at %d of %d sites", x.def, hits[i], sites, len(plans[i].Sites))
		if x.needs && sites == 0 {
			t.Errorf("%s: no hit", x.def)
		}
	}
	if len(pairs) < least {
		t.Errorf("only %d sites were hit", len(pairs))
	}
}
