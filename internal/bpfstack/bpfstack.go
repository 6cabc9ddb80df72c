// Package bpfstack counts the stack of BPF programs as the kernel's verifier does.
package bpfstack

// Limit is the size in bytes of the stack that a program shares with the functions it
// calls (MAX_BPF_STACK in include/linux/filter.h).
const Limit = 512

// Unit is the number of bytes to whose multiple a frame's size is rounded up
// (check_max_stack_depth in kernel/bpf/verifier.c; later kernels use a smaller one).
const Unit = 32

// Frame returns how many bytes the verifier counts for a function that uses stack bytes:
// a positive multiple of Unit.
func Frame(stack int) int { return (max(stack, 1) + Unit - 1) / Unit * Unit }

// CommSize is the size in bytes of a task's name, TASK_COMM_LEN in linux/sched.h.
const CommSize = 16

// MaxObject is the size in bytes of the largest object that a record can hold: a record
// that large fits only if the calling program needs no stack.
const MaxObject = Limit - Unit

// Room returns how many bytes an object of n bytes takes in a record: a multiple of 8, or
// 0 if no record can hold it.
func Room(n int) int {
	if n < 0 || n > MaxObject {
		return 0
	}
	return (n + 7) &^ 7
}
