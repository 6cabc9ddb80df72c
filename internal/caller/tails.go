package caller

import "github.com/bpfprologue/bpfprologue/internal/dw"

// Tail is a jump at the end of a function to another one, which then has the return address of a call of the former.
type Tail struct {
	From  Call   // the call of the function that jumps
	Rec   int32  // of that function, in the unit
	Start uint64 // where it begins
	jump  Call
}

// Passes returns the value that the jump leaves in a place, in terms of the function that jumps. ok is false if its entry does not say it.
func (t *Tail) Passes(place []byte) (v Value, ok bool, err error) { return t.jump.At(place, false) }

// tail is a jump that the debug information describes: the function that jumps, and the one that is entered, by the offset of an entry of it.
type tail struct {
	jump  Call
	start uint64
	to    uint64
}

// Tails returns the jumps by which a return address shows that a function was entered: those of functions of its unit that go on in this one alone,
// by one jump that is described once, and not in themselves. Each is there once for each direct call of the function that jumps. Whether what
// they say holds later, Again says.
func (x *Unit) Tails(rec int32) (tails []Tail, err error) {
	of, err := x.callsOf(rec)
	if err != nil || of.function.Hi == 0 || !x.jumpsTo(of.entry) {
		return nil, err
	}
	all, err := x.tailCalls()
	if err != nil {
		return nil, err
	}
	own := []uint64{x.u.Off + uint64(x.u.Recs[rec].Off), 0}
	if root := x.u.Recs[rec].Root; root >= 0 {
		own[1] = x.u.Off + uint64(x.u.Recs[root].Off)
	}
	number := make(map[int32]int)
	for _, t := range all {
		number[t.jump.Caller]++
	}
	for _, t := range all {
		if t.to != own[0] && t.to != own[1] || number[t.jump.Caller] != 1 || t.jump.Caller == rec {
			continue
		}
		out, err := x.jumpsOut(t.jump.Caller)
		if err != nil {
			return nil, err
		}
		if out.Lost || out.Again || len(out.To) != 1 || out.To[0] != of.entry {
			continue
		}
		calls, _, err := x.Of(t.jump.Caller)
		if err != nil {
			return nil, err
		}
		for _, c := range calls {
			if c.Entry == 0 { // what an indirect call calls may have gone on in the function that jumps
				tails = append(tails, Tail{c, t.jump.Caller, t.start, t.jump})
			}
		}
		if len(tails) > MaxCalls {
			return nil, nil
		}
	}
	return tails, nil
}

// tailCalls returns the jumps of the unit's functions that the debug information describes.
func (x *Unit) tailCalls() ([]tail, error) {
	x.tailsOnce.Do(func() {
		x.tailsErr = x.eachFunction(func(f *function, e dw.Entry) error {
			return x.each(e, 0, func(k dw.Entry, _ dw.Value, jumps, _ bool) error {
				if !jumps {
					return nil
				}
				t := tail{jump: Call{Caller: f.rec, Unit: x.u.Unit.Unit, entry: k, x: x}, start: f.start}
				callee, ok, err := t.jump.Callee()
				if ok {
					t.to = callee.Off
				}
				x.tails = append(x.tails, t)
				return err
			})
		})
	})
	return x.tails, x.tailsErr
}
