// Package raced says whether tests run under the race detector, which makes some of them ten times slower.
package raced

import "testing"

// OneGoroutine skips a test under the race detector: it is slow there, and starts no goroutines to speak of, so that there is nothing to find.
func OneGoroutine(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("without the race detector only: it has one goroutine")
	}
}
