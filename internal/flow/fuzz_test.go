package flow

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// FuzzRuns follows any bytes as code, with any marks. Nothing panics, ways are at instructions,
// and a walk over the same instructions, which knows neither blocks nor sets of states, begins no
// run that has not passed a way in, and where none of them is marked, passes just one.
func FuzzRuns(f *testing.F) {
	for _, code := range []string{
		"\xff\xc0\xff\xc0\x75\xfc\xc3", "\xeb\x02\x0f\x0b\xff\xc0\x75\xfc\xc3", "\x75\x04\xff\xc0\xeb\x02\xff\xc0\xff\xc0\xc3",
		"\x75\x02\xff\xc0\xff\xc0\x75\xfc\xe8\x00\x00\x00\x00", "\x90\x90\x74\xfc\x75\xfb\xeb\x01\xcc\x75\xf5\xff\xe0",
	} {
		f.Add(false, []byte(code), []byte{0, 0, 2, 2})
		f.Add(false, []byte(code), []byte{1, 0, 4, 2, 3, 1})
	}
	f.Add(true, []byte("\x61\x00\x00\x54\x00\x04\x00\x91\x02\x00\x00\x14\x00\x04\x00\x91\xe1\xff\xff\xb5\xc0\x03\x5f\xd6"), []byte{1, 0, 3, 0, 5, 2})
	f.Fuzz(func(t *testing.T, arm bool, code, marks []byte) {
		if len(code) > 1<<10 || len(marks) > 1<<8 {
			return
		}
		arch := insn.For("amd64")
		if arm {
			arch = insn.For("arm64")
		}
		part := insn.Code{Addr: start, Bytes: code}
		g := new(Graph).Follow(&Function{Arch: arch, Parts: []insn.Code{part}, Entry: start, Read: func(uint64, int) []byte { return nil }})
		for _, b := range g.Blocks {
			if b.First >= b.Last || int(b.Last) > len(g.Insns) {
				t.Fatalf("block %+v of %d instructions", b, len(g.Insns))
			}
		}
		w := walk{g: g, arch: arch, code: part, marks: make(map[int32]MarkKind)}
		var list []Mark
		for i := 0; i+1 < len(marks) && len(g.Insns) > 0; i += 2 {
			w.marks[int32(marks[i])%int32(len(g.Insns))] = MarkKind(marks[i+1] % 4)
		}
		for n := range g.Insns {
			if k, ok := w.marks[int32(n)]; ok {
				list = append(list, Mark{Insn: int32(n), Kind: k})
			}
		}
		w.runs = g.Solver().Solve(list, nil)
		for _, ways := range [][]Way{w.runs.In, w.runs.Out} {
			for _, x := range ways {
				for _, n := range append([]int32{x.Insn, x.Probe}, x.Before...) {
					if at, ok := g.At(g.Insns[n].Addr); !ok || int32(at) != n {
						t.Fatalf("way %+v is at no instruction", x)
					}
				}
			}
		}
		if g.Why == "" && len(g.Insns) > 0 {
			w.check(t)
		}
	})
}

// walk is a walk over all paths through code. It decodes the code itself.
type walk struct {
	g     *Graph
	arch  *insn.Arch
	code  insn.Code
	marks map[int32]MarkKind
	runs  Runs
}

// at is a place on a path: before an instruction, in a run or not, with the number of probes
// since the last end of a run: 0, 1, or 2 for more.
type at struct {
	addr uint64
	in   state
	hits int
}

func (w *walk) check(t *testing.T) {
	once := true // each run passes one way in
	probes, jumps := make(map[int32]bool), make(map[int32]bool)
	for _, x := range w.runs.In {
		if x.Probe == x.Insn {
			probes[x.Insn] = true
		} else {
			jumps[x.Probe] = true // for what is after the jump and its mark
		}
		once = once && !x.Again
	}
	for _, k := range w.marks {
		once = once && k != MarkAway
	}
	seen := map[at]bool{}
	todo := []at{{addr: start, in: outside}}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[p] || p.addr-start >= uint64(len(w.code.Bytes)) {
			continue
		}
		seen[p] = true
		n, ok := w.g.At(p.addr)
		if !ok {
			t.Fatalf("%#x is not in the graph", p.addr)
		}
		if probes[int32(n)] {
			p.hits = min(p.hits+1, 2)
		}
		kind, marked := w.marks[int32(n)]
		begins := marked && (kind == MarkEnter && p.in != inside || kind == MarkInside && p.in == outside)
		switch {
		case begins && p.hits == 0:
			t.Fatalf("a run begins at %#x and has passed no way in: %s", p.addr, runsText(w.g, w.runs))
		case once && p.hits == 2:
			t.Fatalf("a run passes two ways in, the last one at %#x: %s", p.addr, runsText(w.g, w.runs))
		case once && marked && kind == MarkExit && p.in == outside && p.hits > 0:
			t.Fatalf("a way in was passed before %#x and no run has begun: %s", p.addr, runsText(w.g, w.runs))
		}
		switch {
		case marked && kind == MarkExit:
			p.in, p.hits = outside, 0
		case marked && kind == MarkAway && p.in == inside:
			p.in, p.hits = away, 0
		case marked && kind != MarkAway:
			p.in = inside
		}
		if jumps[int32(n)] {
			p.hits = min(p.hits+1, 2)
		}
		in, ok := w.arch.Next(w.code.Bytes[p.addr-start:])
		if !ok {
			continue
		}
		if in.Branches && !in.Call {
			todo = append(todo, at{p.addr + uint64(in.Target), p.in, p.hits})
		}
		if in.Onward {
			todo = append(todo, at{p.addr + uint64(in.Size), p.in, p.hits})
		}
	}
}
