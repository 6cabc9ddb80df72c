package tracer_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
)

// counting returns a program that counts hits in an array by the lowest 32 bits of the cookie.
func counting(hits *ebpf.Map) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{Name: "count", License: "GPL", Instructions: asm.Instructions{
		asm.FnGetAttachCookie.Call(),
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, hits.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "exit"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}}
}

// TestLiving: while sites are detached and attached again, hits of the others are seen, and none
// twice; silent probes see none.
func TestLiving(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile int sink;
__attribute__((noinline)) void one(int a) { sink += a; }
__attribute__((noinline)) void two(int a) { sink -= a; }
int main(void) { for (int i = 0; i < 20000; i++) { one(i); two(i); } return 0; }
`
	path, img := build(t, "gcc-12", "living.c", source, "-O2")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, multi := range []bool{true, false} {
		target := r.Target()
		if multi && !target.UprobeMulti {
			t.Log("the kernel has no uprobe.multi")
			continue
		}
		target.UprobeMulti = multi
		p, err := plansOf(img, plan.Options{Target: target}, "[ot][nw][eo] a")
		if err != nil {
			t.Fatal(err)
		}
		hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer hits.Close()
		user := counting(hits)
		d, err := instances.NewDispatch(p[0], func(int) *ebpf.ProgramSpec { return user })
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := d.Load()
		if err != nil {
			t.Fatalf("%+v", err)
		}
		defer loaded.Close()
		ctx := context.Background()
		a, err := loaded.Attach(ctx, r, instances.AttachOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		count := func() (out [2]uint64) {
			for i := range out {
				if err := hits.Lookup(uint32(i), &out[i]); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
		execute := func() {
			if out, err := exec.Command(path).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}
		execute()
		n := count()
		if n != [2]uint64{20000, 20000} {
			t.Errorf("uprobe.multi %v: %v hits", multi, n)
		}
		if err := a.Silence(true); err != nil {
			t.Fatal(err)
		}
		execute()
		if m := count(); m != n {
			t.Errorf("uprobe.multi %v: while silent %v, then %v hits", multi, n, m)
		}
		if err := a.Silence(false); err != nil {
			t.Fatal(err)
		}
		execute()
		if m := count(); m[0]-n[0] != 20000 {
			t.Errorf("uprobe.multi %v: after silence %v, then %v hits", multi, n, m)
		}
		n = count()
		other, err := d.Load()
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		b, err := other.Attach(ctx, r, instances.AttachOptions{Silent: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		execute()
		if m := count(); m[0]-n[0] != 20000 {
			t.Errorf("uprobe.multi %v: beside a silent one %v, then %v hits", multi, n, m)
		}
		n = count()
		if err := errors.Join(a.Silence(true), b.Silence(false), a.Close()); err != nil {
			t.Fatal(err)
		}
		execute()
		if m := count(); m[0]-n[0] != 20000 || m[1]-n[1] != 20000 {
			t.Errorf("uprobe.multi %v: replaced: %v, then %v hits", multi, n, m)
		}
	}
}

// TestTogether: several definitions are in one program, and each is attached, made silent and ended by
// itself.
func TestTogether(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	const source = `
volatile int sink;
__attribute__((noinline)) void one(int a) { sink += a; }
__attribute__((noinline)) void two(int a, int b) { sink -= a + b; }
__attribute__((noinline)) void three(int a, int b) { sink ^= a + b; }
int main(void) { for (int i = 0; i < 1000; i++) { one(i); two(i, 1); three(i, 2); } return 0; }
`
	path, img := build(t, "gcc-12", "together.c", source, "-O2")
	r, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plans, err := plansOf(img, plan.Options{Target: r.Target()}, "one a", "two b", "three b a", "t* a")
	if err != nil {
		t.Fatal(err)
	}
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(plans))})
	if err != nil {
		t.Fatal(err)
	}
	defer hits.Close()
	user := counting(hits)
	all, err := instances.NewDispatches(plans, func(_, _ int) *ebpf.ProgramSpec { return user })
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := instances.LoadDispatches(all)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	ids := make(map[ebpf.ProgramID]bool)
	var attached []*instances.Attachment
	for i, d := range loaded {
		defer d.Close()
		for _, p := range d.Programs {
			info, err := p.Info()
			if err != nil {
				t.Fatal(err)
			}
			id, _ := info.ID()
			ids[id] = true
		}
		a, err := d.Attach(context.Background(), r, instances.AttachOptions{Cookie: func(int) uint64 { return uint64(i) }})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		attached = append(attached, a)
	}
	if len(ids) != 1 {
		t.Errorf("%d programs, want one", len(ids))
	}
	before := make([]uint64, len(plans))
	expect := func(when string, want ...uint64) {
		t.Helper()
		if out, err := exec.Command(path).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		for i := range plans {
			var n uint64
			if err := hits.Lookup(uint32(i), &n); err != nil {
				t.Fatal(err)
			}
			if n-before[i] != want[i] {
				t.Errorf("%s: %v: %d hits, want %d", when, plans[i].Definition, n-before[i], want[i])
			}
			before[i] = n
		}
	}
	expect("all", 1000, 1000, 1000, 2000)
	if err := attached[1].Silence(true); err != nil {
		t.Fatal(err)
	}
	expect("one is silent", 1000, 0, 1000, 2000)
	if err := attached[0].Silence(true); err != nil {
		t.Fatal(err)
	}
	expect("another one too", 0, 0, 1000, 2000)
	if err := errors.Join(attached[1].Silence(false), loaded[2].Close(), attached[2].Close()); err != nil {
		t.Fatal(err)
	}
	expect("one speaks again, one is closed", 0, 1000, 0, 2000)
}
