// Package bpfstack counts the stack of BPF programs as the kernel's verifier does.
package bpfstack

// Limit is the stack of a program and of the functions that it calls, in bytes
// (MAX_BPF_STACK in include/linux/filter.h).
const Limit = 512

// Unit is what a frame's size is rounded up to (check_max_stack_depth in
// kernel/bpf/verifier.c; later kernels count finer).
const Unit = 32

// Frame returns what the verifier charges for a function that uses stack bytes: a
// multiple of Unit that is not 0.
func Frame(stack int) int { return (max(stack, 1) + Unit - 1) / Unit * Unit }

// CommSize is the bytes of a task's name, TASK_COMM_LEN in linux/sched.h.
const CommSize = 16

// MaxObject is the size of the largest object that a record can hold: a record of that
// size leaves room for nothing but a program that needs no stack.
const MaxObject = Limit - Unit

// Room returns how many bytes of a record an object of n bytes takes: a multiple of 8, or
// 0 for an object that no record can hold.
func Room(n int) int {
	if n < 0 || n > MaxObject {
		return 0
	}
	return (n + 7) &^ 7
}
