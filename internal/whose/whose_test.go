package whose

import (
	"context"
	"os/exec"
	"testing"
)

// TestEndedProcess: a process that ends before it is waited for has ended, which is no error.
func TestEndedProcess(t *testing.T) {
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	h := Target{PIDs: []int{c.Process.Pid}}
	ctx, stop, err := h.Bounded(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if ctx.Err() == nil {
		t.Error("it is still traced")
	}
}
