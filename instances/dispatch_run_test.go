package instances

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/choice"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Where a program that is run on request finds the cookie in its context, and leaves what the
// user's program got.
const (
	atCookie  = 504
	atResults = 512
)

// TestDispatchRuns executes dispatched programs for every site of some definitions: they deliver
// what the prologue of the site's instance alone does, in both conventions, and reach no other.
func TestDispatchRuns(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	vmlinux, err := dwarfloc.Open(testenv.Vmlinux(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer vmlinux.Close()
	fixture := testenv.Fixture(t, "run-gcc12-O2-dwarf5.exe")
	arena, err := bpfexec.NewArena(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range arena.Bytes {
		arena.Bytes[i] = byte(random.Uint32())
	}
	regs := make([]byte, atCookie)
	for at := 0; at < 21*8; at += 8 {
		v := random.Uint64()
		if at%16 == 0 {
			v = arena.Addr(len(arena.Bytes)/2 + random.IntN(1<<16)&^7)
		}
		binary.NativeEndian.PutUint64(regs[at:], v)
	}
	for _, c := range []struct {
		img        *dwarfloc.Image
		definition string
	}{
		{fixture, "* $params"}, {vmlinux, "kmalloc size flags"}, {vmlinux, "vfs_* $params"}, {vmlinux, "get_page page->flags page"},
	} {
		for _, convention := range []prologue.Convention{prologue.ConventionAuto, prologue.ConventionRecord} {
			p := plantest.New(t, c.img, c.definition, plan.Options{Convention: convention, Target: plan.Target{Reads: prologue.ReadUser}})
			dispatchRuns(t, p, regs)
		}
	}
}

func dispatchRuns(t *testing.T, p *plan.Plan, regs []byte) {
	t.Helper()
	handlers := make(map[int]*ebpf.ProgramSpec) // by the words of the result
	words := func(instance int) int {
		in := &p.Instances[instance]
		if p.Convention == prologue.ConventionRecord {
			return in.Prologue.Layout.Size / 8
		}
		return len(p.Sites[in.Sites[0]].Args)
	}
	d, err := NewDispatch(p, func(instance int) *ebpf.ProgramSpec {
		n := words(instance)
		if handlers[n] == nil {
			handlers[n] = &ebpf.ProgramSpec{Name: "handler", Type: ebpf.Kprobe, License: "GPL", Instructions: leaveResult(p.Convention, n)}
		}
		return handlers[n]
	})
	if err != nil {
		t.Fatalf("%v: %v", p.Definition, err)
	}
	for _, s := range d.Specs {
		s.Type, s.AttachType, s.Flags = ebpf.Syscall, ebpf.AttachNone, unix.BPF_F_SLEEPABLE
		for i := range s.Instructions {
			if ins := &s.Instructions[i]; ins.IsBuiltinCall() && ins.Constant == int64(asm.FnGetAttachCookie) {
				load := asm.LoadMem(asm.R0, asm.R1, atCookie, asm.DWord)
				load.Metadata = ins.Metadata
				*ins = load
			}
		}
	}
	loaded, err := d.Load()
	if err != nil {
		t.Fatalf("%v: %+v", p.Definition, err)
	}
	defer loaded.Close()
	sites, got := 0, make([]byte, 1<<12)
	for i, of := range loaded.Instances {
		for n, instance := range of {
			want := runInstance(t, p, instance, words(instance), regs)
			for _, site := range p.Instances[instance].Sites {
				sites++
				clear(got)
				copy(got, regs)
				binary.NativeEndian.PutUint64(got[atCookie:], uint64(n)<<choice.CookieBits|uint64(site))
				if _, err := loaded.Programs[i].Run(&ebpf.RunOptions{Context: got, ContextOut: got}); err != nil {
					t.Fatalf("%v: %v: %v", p.Definition, &p.Sites[site], err)
				}
				if string(got[atResults:atResults+len(want)]) != want {
					t.Errorf("%v: %v: got %x, want %x", p.Definition, &p.Sites[site], got[atResults:atResults+len(want)], want)
				}
			}
		}
	}
	if sites != p.NumProbes() || sites == 0 {
		t.Errorf("%v: %d sites, the plan has %d probes", p.Definition, sites, p.NumProbes())
	}
	t.Logf("%v, %v: %d sites, %d prologues in %d programs", p.Definition, p.Convention, sites, len(p.Instances), len(loaded.Programs))
}

// leaveResult is a user's program that leaves in its context what it gets: err, then the arguments.
func leaveResult(c prologue.Convention, words int) asm.Instructions {
	insns := asm.Instructions{asm.StoreMem(asm.R1, atResults, asm.R2, asm.DWord)}
	for i := range words {
		from, at := asm.R3+asm.Register(i), int16(atResults+8+8*i)
		if c == prologue.ConventionRecord {
			insns = append(insns, asm.LoadMem(asm.R0, asm.R3, int16(8*i), asm.DWord))
			from = asm.R0
		}
		insns = append(insns, asm.StoreMem(asm.R1, at, from, asm.DWord))
	}
	return append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return())
}

// runInstance returns what an instance's prologue alone delivers, as leaveResult leaves it.
func runInstance(t *testing.T, p *plan.Plan, instance, words int, regs []byte) string {
	t.Helper()
	prog, err := bpfexec.Load(bpfexec.CodeOf(p.Instances[instance].Prologue, words))
	if err != nil {
		t.Fatal(err)
	}
	results, err := prog.Run(bpfexec.State{Regs: regs})
	if err != nil {
		t.Fatal(err)
	}
	if err := prog.Close(); err != nil {
		t.Fatal(err)
	}
	want := binary.NativeEndian.AppendUint64(nil, results[0].Err)
	if p.Convention == prologue.ConventionRecord {
		return string(want) + results[0].Record
	}
	for _, v := range results[0].Values[:words] {
		want = binary.NativeEndian.AppendUint64(want, v)
	}
	return string(want)
}
