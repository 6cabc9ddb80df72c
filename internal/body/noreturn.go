package body

import (
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Nothing follows a call of a function that does not return: the instruction after it belongs
// to something else. The debug information says it of functions that are declared so
// (DW_AT_noreturn, DWARF 5 section 3.3.1). Compilers declare nothing for their own calls: see package noreturn.

// noReturns is what is known of functions that do not return.
type noReturns struct {
	mu sync.RWMutex
	// entries says whether functions return, by the offsets of their entries. It has most functions
	// of an image: a sync.Map of them takes eight times as much.
	entries map[uint64]bool
}

// described reports whether the debug information says that a function to which an attribute
// of a unit refers does not return.
func (n *noReturns) described(u *dw.Unit, origin dw.Value) (bool, error) {
	_, off, err := u.Ref(origin)
	if err != nil {
		return false, err
	}
	n.mu.RLock()
	ends, known := n.entries[off]
	n.mu.RUnlock()
	if known {
		return ends, nil
	}
	e, err := u.Target(origin)
	if err != nil {
		return false, err
	}
	_, err = index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		ends = ends || a == dw.AttrNoreturn && v.U != 0
	}, func() bool { return !ends })
	if err != nil {
		return false, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.entries == nil {
		n.entries = make(map[uint64]bool)
	}
	n.entries[off] = ends
	return ends, nil
}
