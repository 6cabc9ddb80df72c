package prologue_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// check emits a prologue and runs it in the interpreter, against the definition.
func check(t *testing.T, w *world, args []prologue.Arg, o prologue.Options) *prologue.Prologue {
	t.Helper()
	p, err := prologue.Emit(args, o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Stack > prologue.MaxStack || p.Stack%8 != 0 {
		t.Errorf("%d bytes of stack, at most %d", p.Stack, prologue.MaxStack)
	}
	got, err := w.interpret(p, len(args))
	if err != nil {
		t.Errorf("%v\n%v", err, p)
	} else if want := w.want(args); got != want {
		t.Errorf("got %#x, want %#x\n%v", got, want, p)
	}
	return p
}

func FuzzEmit(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		f.Add(randomBytes(rng, 300), rng.IntN(2) == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, be bool) {
		s := source{data}
		args := s.args()
		o := prologue.Options{Arch: amd64, BigEndian: be, Frame: []uint16{5}}
		p := check(t, imaginary(be), args, o)
		again, err := prologue.Emit(args, o)
		if err != nil || again.Key() != p.Key() || again.String() != p.String() {
			t.Errorf("two runs differ: %v\n%v%v", err, p, again)
		}
		var e prologue.Emitter
		for range 2 {
			c, err := e.Emit(args, &o)
			if err != nil || string(c.Key) != p.Key() || c.Insns != len(p.Insns) || c.Helpers != p.Helpers {
				t.Errorf("the emitter wrote another one: %v\n% x\n%v", err, c.Key, p)
			}
		}
		if be || bpfexec.Available() != nil {
			return
		}
		if err := bpfexec.Verify(bpfexec.Code{Insns: p.Insns, Args: len(args)}); err != nil {
			var r *bpfexec.Rejected
			if errors.As(err, &r) {
				t.Log(r.Log)
			}
			t.Errorf("%v\n%v", err, p)
		}
	})
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestRandom is the fuzz target without a kernel, on more than its seeds.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	most := 0
	for range 20000 {
		be := rng.IntN(2) == 0
		s := source{randomBytes(rng, 1000)}
		p := check(t, imaginary(be), s.args(), prologue.Options{Arch: amd64, BigEndian: be, Frame: []uint16{5}})
		most = max(most, p.Stack)
		if t.Failed() {
			return
		}
	}
	t.Logf("at most %d bytes of stack", most)
}
