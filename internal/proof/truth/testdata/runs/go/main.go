// Runs of Go's functions: inlined leaves, bodies in the middle of a stack, stacks that grow.
package main

import (
	"errors"
	"fmt"
	"sync/atomic"
)

var (
	sink    int
	numbers [64]int
)

var runsLeaf, runsMiddle, runsOuter, runsEarly, runsLoop, runsSwitched, runsMethod, runsGrown, runsRecursive, runsDeferred, runsPanics, runsGeneric, runsFailed uint64

// trace leaf: main.leaf
func leaf(k int) int {
	atomic.AddUint64(&runsLeaf, 1)
	return k ^ sink
}

// trace middle: main.middle
func middle(k int) int {
	r := leaf(k)
	atomic.AddUint64(&runsMiddle, 1)
	return r + 1
}

// trace outer: main.outer
func outer(k int) int {
	atomic.AddUint64(&runsOuter, 1)
	if k&1 == 1 {
		return middle(k)
	}
	return leaf(k + 1)
}

// trace early: main.early
func early(p []int, k int) int {
	atomic.AddUint64(&runsEarly, 1)
	if p == nil {
		return -1
	}
	return p[k&3]
}

// trace loop: main.loop
func loop(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += numbers[i&63] * i
	}
	atomic.AddUint64(&runsLoop, 1)
	return s
}

// trace switched: main.switched
func switched(k int) int {
	atomic.AddUint64(&runsSwitched, 1)
	switch k {
	case 0:
		return sink
	case 1:
		return 7
	case 2:
		sink = 2
	case 3:
		return sink * 2
	}
	return k
}

type point struct{ x, y int }

// trace method: main.*point*move
func (p *point) move(by int) int {
	atomic.AddUint64(&runsMethod, 1)
	p.x += by
	return p.x * p.y
}

// trace grown: main.grown
//
//go:noinline
func grown(n int) int {
	var room [256]int
	atomic.AddUint64(&runsGrown, 1)
	room[n&255] = n
	if n == 0 {
		return 0
	}
	return grown(n-1) + room[n&255] + leaf(n)
}

// trace recursive: main.recursive
func recursive(n int) int {
	atomic.AddUint64(&runsRecursive, 1)
	if n < 2 {
		return 1
	}
	return n * recursive(n-1)
}

// trace deferred: main.deferred
func deferred(k int) {
	atomic.AddUint64(&runsDeferred, 1)
	sink = k
}

// trace panics: main.panics
func panics(k int) int {
	atomic.AddUint64(&runsPanics, 1)
	if k&1 == 1 {
		panic(k)
	}
	return k
}

// trace generic: main.generic*
func generic[T int | float64](v T) T {
	atomic.AddUint64(&runsGeneric, 1)
	return v + v
}

var errOdd = errors.New("odd")

// trace failed: main.failed
func failed(k int) (int, error) {
	atomic.AddUint64(&runsFailed, 1)
	if k&1 == 1 {
		return 0, errOdd
	}
	return k, nil
}

//go:noinline
func recovered(k int) (r int) {
	defer func() {
		if recover() != nil {
			r = -1
		}
	}()
	defer deferred(k)
	return panics(k)
}

//go:noinline
func work(k int) {
	sink = leaf(k)
	for i := 0; i < k; i++ {
		sink = leaf(i) + outer(i)
		sink = switched(i)
	}
	sink = outer(k) + middle(k)
	sink = early(nil, k) + early(numbers[:], k)
	sink = loop(k) + loop(3)
	p := point{k, 3}
	for p.x < 20 {
		sink = p.move(k + 1)
	}
	sink = recursive(k)
	sink = recovered(k)
	sink = generic(k) + int(generic(2.5))
	if v, err := failed(k); err == nil {
		sink = v
	}
	sink = switched(k)
}

func main() {
	for i := range numbers {
		numbers[i] = i * 7 % 11
	}
	for k := 0; k < 12; k++ {
		work(k)
		done := make(chan int)
		go func() { done <- grown(k * 20) }()
		sink = <-done
	}
	for _, c := range []struct {
		name string
		n    *uint64
	}{
		{"leaf", &runsLeaf}, {"middle", &runsMiddle}, {"outer", &runsOuter}, {"early", &runsEarly}, {"loop", &runsLoop},
		{"switched", &runsSwitched}, {"method", &runsMethod}, {"grown", &runsGrown}, {"recursive", &runsRecursive},
		{"deferred", &runsDeferred}, {"panics", &runsPanics}, {"generic", &runsGeneric}, {"failed", &runsFailed},
	} {
		fmt.Println(c.name, *c.n)
	}
}
