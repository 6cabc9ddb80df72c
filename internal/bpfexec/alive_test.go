package bpfexec

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// stuckName makes this test's child hang, as a load in a stuck kernel does.
const stuckName = "bpfexec-stuck"

func init() {
	if len(os.Args) == 1 && os.Args[0] == stuckName {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
}

func TestAlive(t *testing.T) {
	if err := answers(childName, childTime); err != nil {
		t.Errorf("a child that loads a program: %v", err)
	}
	start := time.Now()
	if err := answers(stuckName, 200*time.Millisecond); !errors.Is(err, ErrStuck) {
		t.Errorf("a child that hangs: %v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the limit of 200ms took %v", d)
	}
}

type counter int

func (c *counter) Close() error { *c++; return io.EOF }

// TestClose: every program is closed and its error returned, and no more than
// 128 are closed between two pauses.
func TestClose(t *testing.T) {
	var c counter
	start, before := time.Now(), pace.closed
	const n = 8 * closedPerPause
	for range n {
		if err := Close(&c); err != io.EOF {
			t.Fatalf("got %v", err)
		}
	}
	if c != n || pace.closed-before < n {
		t.Errorf("%d closed, %d counted, want %d", c, pace.closed-before, n)
	}
	// A grace period takes some ticks of the clock, so eight take measurable time.
	if d := time.Since(start); d < time.Millisecond {
		t.Errorf("%d programs closed in %v, without a pause", n, d)
	}
}
