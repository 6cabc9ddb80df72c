package dw

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// Which frame description covers an address is only known when all of them have been read: 45,000 in a kernel. The table that this
// makes is small, so it can be kept with the image's index. A description itself is read where it is whenever one asks for it.

// frameAtSize is the size of an entry of a frame table: 8 bytes each for the first address of a description, and for twice
// its offset in its section, plus 1 in .eh_frame. Entries are sorted by address, and empty descriptions have none.
const frameAtSize = 16

type frameAt struct{ lo, place uint64 }

func placeOf(sec frameSection, off uint64) uint64 {
	if sec.eh {
		return off<<1 | 1
	}
	return off << 1
}

// frameTable is where an image's frame descriptions are.
type frameTable struct {
	at   []byte
	kept bool
	err  error // why not all of them could be read
}

func (t *frameTable) len() int { return len(t.at) / frameAtSize }

func (t *frameTable) entry(i int) frameAt {
	b := t.at[i*frameAtSize:]
	return frameAt{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// after returns the number of the first entry whose address is above another one.
func (t *frameTable) after(addr uint64) int {
	return sort.Search(t.len(), func(i int) bool { return t.entry(i).lo > addr })
}

// frames is what is known of an image's frame descriptions.
type frames struct {
	once  sync.Once
	table atomic.Pointer[frameTable]
	kept  func() []byte // see UseFrameTable

	mu   sync.RWMutex
	cies map[uint64]*cie // by place
}

// FrameTable returns a table to keep for UseFrameTable, or nil if not all frame descriptions can be read.
func (d *Data) FrameTable() []byte {
	t := d.frameTable()
	if t.err != nil {
		return nil
	}
	d.frames.mu.RLock()
	defer d.frames.mu.RUnlock()
	for _, c := range d.frames.cies {
		if c.err != nil {
			return nil
		}
	}
	return t.at
}

// UseFrameTable sets what returns a table that FrameTable made of the image, or nil. It must be called before anything else asks for a
// frame description. An entry that is none of a description makes the table void.
func (d *Data) UseFrameTable(kept func() []byte) { d.frames.kept = kept }

func (d *Data) frameTable() *frameTable {
	d.frames.once.Do(func() {
		if d.frames.kept != nil {
			if at := d.frames.kept(); len(at) > 0 && len(at)%frameAtSize == 0 {
				d.frames.table.Store(&frameTable{at: at, kept: true})
				return
			}
		}
		d.frames.table.Store(d.readFrames())
	})
	return d.frames.table.Load()
}

// FrameOf returns the frame description that covers a link-time address. ok is false if none does.
func (d *Data) FrameOf(addr uint64) (f FDE, ok bool, err error) {
	t := d.frameTable()
	err = t.err // it may be in what could not be read
	for i := t.after(addr) - 1; i >= 0; i-- {
		f, ok := d.frameAt(t.entry(i))
		// Descriptions do not overlap, but each section may have one.
		switch {
		case !ok && t.kept:
			d.dropFrameTable(t)
			return d.FrameOf(addr)
		case !ok:
		case addr < f.hi && f.cie.err == nil:
			return f, true, nil
		case addr < f.hi:
			err = f.cie.err
		default:
			return FDE{}, false, err
		}
	}
	return FDE{}, false, err
}

// framesIn returns the frame descriptions of code in [lo, hi), by address, and why there may be more.
func (d *Data) framesIn(lo, hi uint64) (out []FDE, err error) {
	t := d.frameTable()
	for i := t.after(hi-1) - 1; i >= 0; i-- {
		f, ok := d.frameAt(t.entry(i))
		if !ok && t.kept {
			d.dropFrameTable(t)
			return d.framesIn(lo, hi)
		}
		if ok && f.hi <= lo {
			break
		}
		if ok {
			out = append(out, f)
		}
	}
	slices.Reverse(out)
	return out, t.err
}

// dropFrameTable puts the image's table in the place of a kept one that is of another.
func (d *Data) dropFrameTable(wrong *frameTable) {
	d.frames.table.CompareAndSwap(wrong, d.readFrames())
}

// frameAt reads the frame description that an entry of a table is for. ok is false if there is no such one.
func (d *Data) frameAt(at frameAt) (f FDE, ok bool) {
	sec := d.frameSection(at.place&1 != 0)
	if at.place>>1 >= uint64(len(sec.d)) {
		return FDE{}, false
	}
	b := bin.Reader{D: sec.d, P: int(at.place >> 1), BigEndian: d.BigEndian}
	h, ok := d.frameEntry(sec, &b)
	if !ok || h.isCIE || h.isEnd {
		return FDE{}, false
	}
	f, ok = d.readFDE(sec, &h)
	return f, ok && f.lo == at.lo && f.hi > f.lo
}

// readFrames makes the table.
func (d *Data) readFrames() *frameTable {
	var t frameTable
	var all []frameAt
	// A linked image may have some descriptions in each section: code built without -g has only .eh_frame.
	for _, eh := range [...]bool{false, true} {
		sec := d.frameSection(eh)
		if all == nil {
			all = make([]frameAt, 0, len(sec.d)/48) // a kernel's descriptions take 50 bytes each
		}
		var err error
		if all, err = d.appendFrames(all, sec); t.err == nil {
			t.err = err
		}
	}
	// The sort is stable: of equal addresses, the one read first stays first.
	all = radix.Sort(all, func(f *frameAt) uint64 { return f.lo })
	t.at = make([]byte, 0, len(all)*frameAtSize)
	for _, f := range all {
		t.at = binary.LittleEndian.AppendUint64(t.at, f.lo)
		t.at = binary.LittleEndian.AppendUint64(t.at, f.place)
	}
	return &t
}

// appendFrames appends where a section's frame descriptions are, up to the section's end or to where it is damaged,
// which the error says. What a single entry has that cannot be read does not affect others.
func (d *Data) appendFrames(out []frameAt, sec frameSection) ([]frameAt, error) {
	var damage error
	b := bin.Reader{D: sec.d, BigEndian: d.BigEndian}
	for b.P < len(sec.d) {
		h, ok := d.frameEntry(sec, &b)
		if !ok {
			return out, d.Errorf(sec.name, h.start, "invalid entry length %#x", h.length)
		}
		if h.isCIE || h.isEnd {
			continue // a CIE is read when something refers to it
		}
		f, ok := d.readFDE(sec, &h)
		switch {
		case ok && f.hi > f.lo:
			out = append(out, frameAt{f.lo, placeOf(sec, f.off)})
		case !ok && damage == nil:
			damage = d.Errorf(sec.name, h.start, "the frame description does not fit into its length")
		}
	}
	return out, damage
}

// cieOf returns the CIE that a description refers to. Of several descriptions with one that is not there, the error names the first one.
func (d *Data) cieOf(sec frameSection, h *frameHead) *cie {
	place := placeOf(sec, h.ref)
	d.frames.mu.RLock()
	c := d.frames.cies[place]
	d.frames.mu.RUnlock()
	if c != nil {
		return c
	}
	if c = d.cieAt(sec, h.ref); c == nil {
		c = d.lostCIE(sec, d.Errorf(sec.name, h.start, "no common information entry at %#x", h.ref))
	}
	d.frames.mu.Lock()
	defer d.frames.mu.Unlock()
	if other := d.frames.cies[place]; other != nil {
		return other
	}
	if d.frames.cies == nil {
		d.frames.cies = make(map[uint64]*cie)
	}
	d.frames.cies[place] = c
	return c
}
