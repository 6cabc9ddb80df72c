// Package refusals has the errors that say why a user-space program takes no probe at a site.
package refusals

import "errors"

// The first four are wrapped by the errors of inside.CheckInstructions, the others by that of inside.Returns.
var (
	// ErrMidInstruction is for an address inside an instruction.
	ErrMidInstruction = errors.New("the address is inside an instruction")
	// ErrNotDecoded is for an address of which it is not known whether an instruction begins there.
	ErrNotDecoded = errors.New("it is not known whether an instruction begins there")
	// ErrHarmful is for an instruction at which kernels accept a uprobe that changes what the program computes, ends it, or stops it for
	// seconds.
	ErrHarmful = errors.New("a probe at this instruction would harm the program")
	// ErrNoFunction is for a symbol at which no run of a function begins that anybody calls.
	ErrNoFunction = errors.New("no function begins there")
	// ErrMovingStack is for a function of Go, whose return cannot be probed.
	ErrMovingStack = errors.New("a return probe would end the program, because Go moves stacks")
	// ErrNotCalled is for what a program begins with, whose return cannot be probed.
	ErrNotCalled = errors.New("nothing calls it: a return probe would change how many arguments the program has")
	// ErrUnwinding is for a function through which an exception may pass, whose return cannot be probed.
	ErrUnwinding = errors.New("a return probe would end the program if an exception passed the function")
)
