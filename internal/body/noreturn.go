package body

import (
	"strings"
	"sync"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// Nothing follows a call of a function that does not return: the instruction after it belongs
// to something else. The debug information says it of functions that are declared so
// (DW_AT_noreturn, DWARF 5 section 3.3.1). Compilers declare nothing for their own calls.

// neverReturn are functions that compilers call by themselves, and whether that is a check: it
// fails only when something is wrong.
var neverReturn = map[string]bool{
	"__stack_chk_fail": true, "__stack_chk_fail_local": true, // GCC's and LLVM's -fstack-protector
	"__ubsan_handle_builtin_unreachable": true, "__ubsan_handle_missing_return": true, // compiler-rt, lib/ubsan
	"__fortify_fail": true, "__chk_fail": true, // glibc, debug/
	"_Unwind_Resume": false, "_Unwind_Resume_or_Rethrow": false, // Itanium C++ ABI: Exception Handling, 1.5.2
	"__cxa_throw": false, "__cxa_rethrow": false, "__cxa_bad_cast": false, // the same, 2.4
	"__cxa_bad_typeid": false, "__cxa_throw_bad_array_new_length": false,
	"__clang_call_terminate": false, "__cxa_call_unexpected": false,
}

// goPanics reports whether a function of Go's runtime does not return: the failures of checks that
// the compiler inserts, and panics (cmd/compile/internal/typecheck/builtin.go).
func goPanics(name string) bool {
	own, is := strings.CutPrefix(name, "runtime.")
	if !is {
		return false
	}
	switch own {
	case "gopanic", "goexit", "throw", "fatal", "block":
		return true
	}
	return strings.HasPrefix(own, "panic") || strings.HasPrefix(own, "goPanic")
}

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
