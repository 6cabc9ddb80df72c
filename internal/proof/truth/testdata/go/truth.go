package main

import (
	"bufio"
	"fmt"
	"os"
)

// What the program records with; see truth.h for C's.

var (
	out    = bufio.NewWriter(os.Stdout)
	number uint64
	state  uint64 = 0x9e3779b97f4a7c15
	marked uint64
	kept   any
)

// trace truth_mark: main.mark call=%ax
//
//go:noinline
func mark(call uint64) {
	marked = call
}

func open() {
	number++
}

// run records a run: names and values, numbers as uint64.
func run(label string, values ...any) {
	fmt.Fprintf(out, "%d %s", number, label)
	for i := 0; i+1 < len(values); i += 2 {
		fmt.Fprintf(out, " %s=x%x", values[i], values[i+1])
	}
	fmt.Fprintln(out)
}

// u extends a number to 64 bits as its type is.
func u[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr](v T) uint64 {
	return uint64(v)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

//go:noinline
func start() {
	mark(number)
}

//go:noinline
func stop() {
	mark(0)
}

// hide returns its argument, which the compiler does not know.
//
//go:noinline
func hide[T any](v T) T {
	return v
}

// keep uses a value.
//
//go:noinline
func keep[T any](v T) {
	if marked == 1<<63 {
		kept = v
	}
}

func random() int64 {
	state ^= state << 13
	state ^= state >> 7
	state ^= state << 17
	r := state * 0x2545f4914f6cdd1d
	switch r % 8 {
	case 0:
		return int64(r >> 60)
	case 1:
		return -int64(r>>56) - 1
	case 2:
		return int64(r >> 32)
	}
	return int64(r)
}

func main() {
	for i := 0; i < 10; i++ {
		numbers()
		loops()
		structures()
		generics()
		coroutines()
	}
	out.Flush()
}
