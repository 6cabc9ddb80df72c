package prologue_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/bpfstack"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// maxStack bounds the stack of every prologue of the registers convention, in bytes.
// Results need at most 80: one read of 64 bytes that starts at an odd word, and one single.
// An intermediate value is on the stack only while a smaller operand is computed,
// so their depth is the logarithm of maxNodes (see needs in simplify.go), and
// there is one buffer more for reads.
const maxStack = 256

// check emits a prologue and runs it in the interpreter, against the definition.
// It does so too for a program that learns which of the arguments are doubtful.
func check(t *testing.T, w *world, args []prologue.Arg, o prologue.Options) *prologue.Prologue {
	t.Helper()
	if o.Doubts = true; w.helper == nil {
		var full *prologue.StackError
		if _, err := prologue.Emit(doubted(args), o); !errors.As(err, &full) {
			checkOne(t, w, doubted(args), o)
		}
	}
	o.Doubts = false
	return checkOne(t, w, args, o)
}

func checkOne(t *testing.T, w *world, args []prologue.Arg, o prologue.Options) *prologue.Prologue {
	t.Helper()
	p, err := prologue.Emit(args, o)
	if err != nil {
		t.Fatal(err)
	}
	most := maxStack
	if o.Convention == prologue.ConventionRecord {
		most = prologue.MaxObject
	}
	if p.Stack > most || p.Stack%8 != 0 {
		t.Errorf("%d bytes of stack, at most %d", p.Stack, most)
	}
	got, err := w.interpret(p, len(args))
	if err != nil {
		t.Errorf("%v\n%v", err, p)
	} else if want := w.wantBy(&o, args); got != want {
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
		all := []*prologue.Prologue{check(t, imaginary(be), args, prologue.Options{Arch: amd64, BigEndian: be, Reads: prologue.ReadCast, SignExtends: true})}
		p := check(t, imaginary(be), args, o)
		again, err := prologue.Emit(args, o)
		if err != nil || again.Key() != p.Key() || again.String() != p.String() {
			t.Errorf("two runs differ: %v\n%v%v", err, p, again)
		}
		var e prologue.Emitter
		for range 2 {
			err := e.Emit(args, &o)
			if err != nil || string(e.Key) != p.Key() || e.Insns != len(p.Insns) || e.Helpers != p.Helpers {
				t.Errorf("the emitter wrote another one: %v\n% x\n%v", err, e.Key, p)
			}
		}
		if be || bpfexec.Available() != nil {
			return
		}
		if !kernelhas.Casts() {
			all = nil
		}
		for _, p := range append(all, p) {
			if err := bpfexec.Verify(bpfexec.CodeOf(p, len(args))); err != nil {
				var r *bpfexec.Rejected
				if errors.As(err, &r) {
					t.Log(r.Log)
				}
				t.Errorf("%v\n%v", err, p)
			}
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
		args := s.args()
		p := check(t, imaginary(be), args, prologue.Options{Arch: amd64, BigEndian: be, Frame: []uint16{5}})
		most = max(most, p.Stack)
		check(t, imaginary(be), args, prologue.Options{Arch: amd64, BigEndian: be, Reads: prologue.ReadCast, SignExtends: true})
		if t.Failed() {
			return
		}
	}
	t.Logf("at most %d bytes of stack", most)
}

// TestRandomRecord is TestRandom for records of arguments of all kinds.
func TestRandomRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	most := 0
	for range 20000 {
		be := rng.IntN(2) == 0
		s := source{randomBytes(rng, 3000)}
		args := s.recordArgs()
		p := check(t, imaginary(be), args, prologue.Options{Arch: amd64, BigEndian: be, Frame: []uint16{5}, Convention: prologue.ConventionRecord})
		most = max(most, p.Stack-p.Layout.Size)
		check(t, imaginary(be), args, prologue.Options{Arch: amd64, BigEndian: be, Reads: prologue.ReadCast, SignExtends: true, Convention: prologue.ConventionRecord})
		if t.Failed() {
			return
		}
	}
	t.Logf("at most %d bytes of stack besides the record", most)
}

// FuzzRecord emits records of any arguments and runs them in the interpreter. What
// is emitted fits on the stack; what does not is an error that says by how much.
func FuzzRecord(f *testing.F) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 100 {
		f.Add(randomBytes(rng, 1000), rng.IntN(2) == 0, uint16(rng.IntN(100)))
	}
	f.Fuzz(func(t *testing.T, data []byte, be bool, bound uint16) {
		s := source{data}
		args := s.recordArgs()
		for i := range args {
			if args[i].Kind == prologue.KindString && bound >= 64 {
				args[i].MaxBytes = int(bound) % (prologue.MaxObject + 1)
			}
		}
		o := prologue.Options{Arch: amd64, BigEndian: be, Frame: []uint16{5}, Convention: prologue.ConventionRecord}
		layout := prologue.NewLayout(args, false)
		p, err := prologue.Emit(args, o)
		var full *prologue.StackError
		if errors.As(err, &full) {
			if full.Record != layout.Size || full.Over <= 0 || bpfstack.Frame(full.Record+full.Prologue) <= prologue.MaxObject {
				t.Errorf("%+v for a layout of %d bytes: %v", full, layout.Size, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		check(t, imaginary(be), args, o)
		loads := prologue.Options{Arch: amd64, BigEndian: be, Reads: prologue.ReadCast, SignExtends: true, Convention: prologue.ConventionRecord}
		if _, err := prologue.Emit(args, loads); !errors.As(err, &full) {
			check(t, imaginary(be), args, loads)
		}
		if p.Layout.Size != layout.Size || p.CheckStack(0) != nil || p.CheckStack(bpfstack.Limit-p.Stack+1) == nil {
			t.Errorf("%d bytes of stack, a record of %d: %v, %v", p.Stack, p.Layout.Size, p.CheckStack(0), p.CheckStack(bpfstack.Limit-p.Stack+1))
		}
		at := 0
		for i, x := range p.Layout.Fields {
			if x.Offset != at || x.Size%8 != 0 {
				t.Errorf("argument %d is at %d with %d bytes, after %d", i, x.Offset, x.Size, at)
			}
			at += x.Size
		}
		var e prologue.Emitter
		for range 2 {
			err := e.Emit(args, &o)
			if err != nil || string(e.Key) != p.Key() || e.Insns != len(p.Insns) || e.Helpers != p.Helpers {
				t.Errorf("the emitter wrote another one: %v\n% x\n%v", err, e.Key, p)
			}
		}
	})
}
