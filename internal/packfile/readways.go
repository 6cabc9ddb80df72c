package packfile

import "math"

// readWays are ways that are written out. The slices are empty where they were only passed over.
type readWays struct {
	flags    byte
	unknown  uint32
	noReturn int
	in, out  []readWay
}

type readWay struct {
	Way                  // without what the rest says
	symbol        uint32 // noText: the block's
	offset        uint64
	refused       uint32
	before        []readBefore
	values        bool
	list          []int
	frame, result int
}

type readBefore struct {
	Before
	symbol uint32
}

// outs reads ways out of which nothing but their places is said, relative to an address, or passes over them if keep is not set.
func (r *groupReader) outs(n int, at uint64, keep bool) (out []Way) {
	if n > len(r.D)-r.P {
		r.Fail()
		return nil
	}
	if keep {
		out = make([]Way, 0, n)
	}
	for range n {
		u := r.ULEB()
		at += uint64(unzigzag(u >> 3))
		w := Way{Addr: at, Probe: at}
		switch u & 7 {
		case outZero:
		case outZeroAgain:
			w.Again = true
		case outOne:
			w.View = 1
		case outTwo:
			w.View = 2
		case outThree:
			w.View = 3
		case outLast:
			w.View = lastView
		default:
			v := r.ULEB()
			w.View, w.Again = v>>1, v&1 != 0
			if u&7 == outProbe {
				w.Probe += uint64(r.int())
			}
		}
		if keep {
			out = append(out, w)
		}
	}
	return out
}

// readWays reads ways that are written out, those out only if they are not those of the body around it. addr is the site's.
// If keep is not set it only passes over them.
func (r *groupReader) readWays(addr uint64, sharedOut, keep bool) readWays {
	w := readWays{flags: r.U8()}
	if w.flags&waysUnknown != 0 {
		w.unknown = r.text()
	}
	if w.flags&waysNoReturn != 0 {
		w.noReturn = r.index(math.MaxInt32)
	}
	if w.flags&waysIn != 0 {
		w.in = r.wayList(addr, keep)
	}
	if !sharedOut {
		w.out = r.wayList(addr, keep)
	}
	return w
}

func (r *groupReader) wayList(at uint64, keep bool) (out []readWay) {
	n := r.count(3)
	if keep {
		out = make([]readWay, 0, n)
	}
	for range n {
		w := readWay{symbol: noText, refused: noText}
		flags := r.U8()
		at += uint64(r.int())
		w.Addr, w.Probe, w.View, w.Again = at, at, r.ULEB(), flags&wayAgain != 0
		if flags&wayProbe != 0 {
			w.Probe += uint64(r.int())
		}
		if flags&waySymbol != 0 {
			w.symbol, w.offset = r.text(), r.ULEB()
		}
		if flags&wayRefused != 0 {
			w.refused = r.text()
		}
		if flags&wayBefore != 0 {
			for range r.count(4) {
				b := readBefore{}
				b.Addr = at + uint64(r.int())
				b.Code = r.Bytes(r.ULEB())
				b.symbol, b.Offset = r.text(), r.ULEB()
				if keep {
					b.Code = append([]byte(nil), b.Code...)
					w.before = append(w.before, b)
				}
			}
		}
		if w.values = flags&wayValues != 0; w.values {
			if keep {
				w.list = readList(r)
			} else {
				r.pass(r.count(1))
			}
			w.frame, w.result = r.index(math.MaxInt32), r.index(math.MaxInt32)
		}
		if keep {
			out = append(out, w)
		}
	}
	return out
}

// pass passes over numbers: each ends with the byte whose highest bit is not set.
func (r *groupReader) pass(n int) {
	for i := r.P; n > 0; i++ {
		if i >= len(r.D) {
			r.Fail()
			return
		}
		if r.D[i] < 0x80 {
			n--
			r.P = i + 1
		}
	}
}

// text reads the number of a text.
func (r *groupReader) text() uint32 {
	v := r.ULEB()
	if v >= noText {
		r.Fail()
		return 0
	}
	return uint32(v)
}

// number reads one that is less than math.MaxInt32.
func (r *groupReader) number() int32 { return int32(r.index(math.MaxInt32)) }
