package prologue_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/eval"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/references"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

var globPatterns = []string{"*", "", "?*", "*a*", "imag*", "*nary", "i?agi*y", "*i*i*", "\\\\*x", "*imaginary*"}

// condition makes a condition: computed, or about a text or the current task.
func (s *source) condition() *expr {
	switch s.below(8) {
	case 0:
		return bin(ops.Eq, &expr{Op: ops.Text, A: s.addr(2)}, s.expr(1))
	case 1:
		return eval.Glob(s.addr(2), s.below(70), globPatterns[s.below(len(globPatterns))])
	case 2:
		return eval.Glob(nil, 16, globPatterns[s.below(len(globPatterns))])
	case 3:
		return bin(ops.Eq+loc.Op(s.below(10)), &expr{Op: ops.Task, K: uint64(s.below(9))}, s.expr(1))
	case 4:
		return bin(ops.UDiv, s.expr(1), s.expr(2))
	}
	return s.expr(3)
}

// TestConditions: a prologue with conditions ends the program or goes on as they say, on both byte
// orders, with both conventions, and what it fetches then is right.
func TestConditions(t *testing.T) {
	bpf := bpfexec.Available() == nil
	rng := rand.New(rand.NewPCG(7, 8))
	counts := map[string]int{}
	for i := range 3000 {
		be := i%2 == 1
		w := imaginary(be)
		w.reads = []prologue.Reads{prologue.ReadKernel, prologue.ReadCast, prologue.ReadKernel, prologue.ReadSleep}[i/2%4]
		w.task = map[asm.BuiltinFunc]uint64{
			asm.FnGetCurrentPidTgid: 4711<<32 | 4712, asm.FnGetCurrentUidGid: 100<<32 | 1000, asm.FnGetSmpProcessorId: 3, asm.FnGetCurrentCgroupId: 1 << 33, asm.FnKtimeGetNs: 12345,
		}
		s := source{randomBytes(rng, 400)}
		args := s.args()
		o := w.options(prologue.ConventionRegisters + prologue.Convention(i/4%2))
		o.IfMissing, o.CountMissing = i%3 == 0, i%5 < 2
		for range 1 + s.below(4) {
			o.If = append(o.If, s.condition())
		}
		p, err := prologue.Emit(args, o)
		if err != nil {
			t.Fatal(err)
		}
		pass, missing := true, false
		for _, e := range o.If {
			v, ok := w.eval(e)
			missing = missing || !ok
			if pass = pass && (ok && v != 0 || !ok && o.IfMissing); pass {
				continue
			}
		}
		before := []uint64{0, 7, references.MaxFalse - 1, references.MaxFalse}[i%4]
		w.excluded = before
		got, err := w.interpret(p, len(args))
		switch {
		case errors.Is(err, errEnded):
			if pass {
				t.Fatalf("the program ends, and the conditions hold\n%v", p)
			}
			if w.missing > 1 || w.missing == 1 && (!missing || !o.CountMissing || o.IfMissing) {
				t.Fatalf("counts %d, missing %v\n%v", w.missing, missing, p)
			}
			after := before
			if o.CountMissing && w.missing == 0 {
				after = min(before+1, references.MaxFalse)
			}
			if w.excluded != after {
				t.Fatalf("%d were false, and then %d, want %d; missing %d\n%v", before, w.excluded, after, w.missing, p)
			}
			counts["ended"]++
			counts["counted"] += int(w.missing)
		case err != nil:
			t.Fatalf("%v\n%v", err, p)
		case !pass:
			t.Fatalf("the program goes on, and the conditions do not hold\n%v", p)
		default:
			if want := w.wantBy(&o, args); got != want {
				t.Fatalf("got %#x, want %#x\n%v", got, want, p)
			}
			counts["passed"]++
		}
		if bpf && i%5 == 2 && !be && w.reads == prologue.ReadKernel && !o.CountMissing {
			if err := bpfexec.Verify(bpfexec.CodeOf(p, len(args))); err != nil {
				t.Fatalf("%v\n%v", err, p)
			}
			counts["verified"]++
		}
	}
	t.Log(counts)
	for _, k := range []string{"ended", "counted", "passed"} {
		if counts[k] < 100 {
			t.Errorf("only %d %s", counts[k], k)
		}
	}
}
