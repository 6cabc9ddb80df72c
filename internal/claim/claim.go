// Package claim says which parameters that debug information has lost other evidence has, by the names of kernels' functions: what its tables state,
// what is read as if it was volatile, what is passed on as it is. Packages resolve and witness read the evidence; a Group is what the bodies
// say where debug information knows the parameter.
package claim

import "slices"

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

// passes are functions of kernels whose body is little more than a call of an inlined function, to which they pass these parameters as they are: no
// condition and no assignment is before it (include/linux/sched.h, thread_info.h, cpumask.h, nodemask.h, kref.h, pagemap.h, page-flags.h, spinlock.h,
// spinlock_api_smp.h, include/net/sock.h, include/linux/buffer_head.h, include/asm-generic/qspinlock.h, qrwlock.h, io.h). That they do is seen
// in bodies where debug information has both, too: a structure's first member has its address.
var passes = map[string][]string{
	"test_ti_thread_flag": {"ti", "flag"}, "test_tsk_thread_flag": {"tsk", "flag"}, "task_sigpending": {"p"},
	"set_ti_thread_flag": {"ti", "flag"}, "clear_ti_thread_flag": {"ti", "flag"}, "set_tsk_thread_flag": {"tsk", "flag"}, "clear_tsk_thread_flag": {"tsk", "flag"},
	"do_raw_spin_lock": {"lock"}, "do_raw_spin_unlock": {"lock"}, "__raw_spin_lock": {"lock"}, "__raw_spin_unlock": {"lock"},
	"spin_lock": {"lock"}, "spin_lock_bh": {"lock"}, "spin_lock_irq": {"lock"},
	"spin_unlock": {"lock"}, "spin_unlock_bh": {"lock"}, "spin_unlock_irq": {"lock"}, "spin_unlock_irqrestore": {"lock"},
	"queued_read_unlock": {"lock"}, "__raw_read_unlock": {"lock"},
	"folio_trylock": {"folio"}, "trylock_buffer": {"bh"}, "folio_address": {"folio"}, "slab_address": {"slab"},
	"kref_get": {"kref"}, "kref_get_unless_zero": {"kref"},
	"sock_flag": {"sk", "flag"}, "sock_set_flag": {"sk", "flag"}, "sock_reset_flag": {"sk", "flag"}, "efi_enabled": {"feature"},
	"cpumask_set_cpu": {"cpu", "dstp"}, "cpumask_clear_cpu": {"cpu", "dstp"}, "cpumask_test_cpu": {"cpu", "cpumask"}, "cpumask_clear": {"dstp"},
	"cpumask_empty": {"srcp"}, "cpumask_copy": {"dstp", "srcp"}, "cpumask_subset": {"src1p", "src2p"}, "cpumask_and": {"dstp", "src1p", "src2p"},
	"cpumask_intersects": {"src1p", "src2p"}, "cpumask_first": {"srcp"}, "__nodes_empty": {"srcp"}, "__first_node": {"srcp"}, "__next_node": {"srcp"},
	"buffer_mapped": {"bh"}, "buffer_dirty": {"bh"}, "buffer_uptodate": {"bh"}, "buffer_locked": {"bh"},
	"readl": {"addr"}, "readl_relaxed": {"addr"}, "writel": {"addr"}, "writel_relaxed": {"addr"}, "writeq_relaxed": {"addr"},
}

// PassesOn reports whether a function of a kernel passes a parameter on as it is to what is inlined into it.
func PassesOn(function, parameter string) bool { return slices.Contains(passes[function], parameter) }

// Passes reports whether it does so with any.
func Passes(function string) bool { return passes[function] != nil }

// ReadsOnce reports whether a function of a kernel reads what its parameter points to as it reads what is volatile.
func ReadsOnce(function string) bool { return once[function] }
