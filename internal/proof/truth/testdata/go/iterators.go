//go:build go1.23

package main

import "iter"

func pairOf(v, k int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		_ = yield(called(v, k)) && yield(called(k, v))
	}
}

// iterators calls a function from a coroutine.
func iterators(v, k int64) {
	open()
	run("called", "v", u(v), "k", u(k))
	run("called", "v", u(k), "k", u(v))
	start()
	next, end := iter.Pull(pairOf(hide(v), hide(k)))
	for r, ok := next(); ok; r, ok = next() {
		keep(r)
	}
	end()
	stop()
}
