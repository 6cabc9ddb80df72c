// Package claim says which parameters a kernel's own tables state: the places that debug information has lost, by name, and what the table has
// of each. Package resolve reads the entry that is for the body's code, which is the witness.
package claim

// Operand is what an entry of __jump_table states (include/linux/jump_label.h, struct jump_entry).
type Operand uint8

const (
	// Key is the static key whose branch is patched.
	Key Operand = iota + 1
	// Branch is the bit that the branch was compiled with.
	Branch
)

// branches are the functions whose body is one static branch, and the parameters that are its operands: arch_static_branch is the asm that
// writes the entry (arch/*/include/asm/jump_label.h), the others pass their key on to it (include/linux/jump_label.h).
var branches = map[string]map[string]Operand{
	"arch_static_branch":      {"key": Key, "branch": Branch},
	"arch_static_branch_jump": {"key": Key, "branch": Branch},
	"static_key_false":        {"key": Key},
	"static_key_true":         {"key": Key},
}

// OfBranch returns what a function's parameter is of the static branch in the function's body, or 0.
func OfBranch(function, parameter string) Operand { return branches[function][parameter] }

// once are functions of kernels that read what their parameter points to by READ_ONCE, as if it was volatile (arch/*/include/asm/atomic.h,
// include/linux/atomic/atomic-instrumented.h, atomic-arch-fallback.h, include/linux/list.h).
var once = map[string]bool{
	"atomic_read": true, "atomic64_read": true, "arch_atomic_read": true, "arch_atomic64_read": true, "raw_atomic_read": true,
	"raw_atomic64_read": true, "list_empty": true, "hlist_empty": true, "hlist_unhashed_lockless": true,
}

// ReadsOnce reports whether a function of a kernel reads what its parameter points to as it reads what is volatile.
func ReadsOnce(function string) bool { return once[function] }
