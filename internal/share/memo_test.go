package share

import (
	"math/rand/v2"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestPlain checks that arguments with equal numbers have equal prologues, without helper
// calls, and that arguments that are not plain have no number.
func TestPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	numbers := []uint64{0, 1, 2, 7, 16, 17, 99, 1<<valueBits - 1, 1 << valueBits, 1 << 21, 1 << 42, 1<<64 - 1}
	random := func() prologue.Arg {
		e := &loc.Expr{Op: ops.Const, K: numbers[rng.IntN(len(numbers))]}
		a := prologue.Arg{Size: rng.IntN(18), Signed: rng.IntN(2) == 0}
		switch rng.IntN(5) {
		case 0:
			a.Reason.Code = reasons.OptimizedOut + loc.ReasonCode(rng.IntN(int(reasons.Damaged)))
		case 1:
			e.Op = ops.Reg
			a.Loc = loc.Location{Kind: loc.KindRegister, Expr: e}
		case 2:
			a.Loc = loc.Location{Kind: loc.KindConstant, Expr: e}
		case 3:
			a.Loc = loc.Location{Kind: loc.KindValue, Expr: e}
		case 4:
			a.Loc = loc.Location{Kind: loc.KindMemory, Expr: e}
		}
		return a
	}
	var e prologue.Emitter
	o := prologue.Options{Arch: arch.ByName("amd64")}
	seen := make(map[plain]string)
	again := 0
	for range 300000 {
		args := make([]prologue.Arg, 1+rng.IntN(prologue.MaxArgs))
		ok := true
		for i := range args {
			args[i] = random()
			k := args[i].Loc.Kind
			ok = ok && k != loc.KindValue && k != loc.KindMemory
		}
		p := plainOf(args)
		if p == 0 {
			continue
		}
		if err := e.Emit(args, &o); err != nil {
			t.Fatal(err)
		}
		key, known := seen[p]
		if known {
			again++
		}
		if !ok || e.Helpers != 0 || known && key != string(e.Key) {
			t.Fatalf("%+v: number %#x, %d helper calls, key\n% x, of others with the number\n% x", args, p, e.Helpers, e.Key, key)
		}
		seen[p] = string(e.Key)
	}
	if again < 1000 {
		t.Errorf("only %d came again", again)
	}
}
