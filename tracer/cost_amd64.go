package tracer

import "unsafe"

// The addresses of functions of cost_amd64.s that do nothing.
var steppedPC, emulatedPC, afterPC uintptr

// emptyFunctions returns two functions to measure with: what the kernel does with the first instruction of before is what it does where a
// run begins.
func emptyFunctions(steps bool) (before, after *uintptr) {
	if steps {
		return &steppedPC, &afterPC
	}
	return &emulatedPC, &afterPC
}

// call calls a function without arguments and results, of which this is the address.
func call(pc *uintptr) {
	// A value of a function's type leads to its address (https://go.dev/s/go11func).
	f := *(*func())(unsafe.Pointer(&pc))
	f()
}
