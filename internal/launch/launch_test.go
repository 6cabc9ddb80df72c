package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestStatus: the statuses are those of a shell.
func TestStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		words []string
		want  error
	}{
		{nil, nil},
		{[]string{"true"}, nil},
		{[]string{"sh", "-c", "exit 3"}, Status(3)},
		{[]string{"sh", "-c", "kill -9 $$"}, Status(Signal + 9)},
		{[]string{"no such command"}, Status(None)},
		{[]string{file}, Status(Cannot)},
	} {
		running, c, err := Start(t.Context(), tt.words)
		if err == nil {
			if c != nil {
				<-running.Done()
			}
			err = c.Wait(t.Context())
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%q: %v, want %v", tt.words, err, tt.want)
		}
	}
}

// TestCancelled: when the context ends, so does the command.
func TestCancelled(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, c, err := Start(ctx, []string{"sleep", "60"})
	if err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if err := c.Wait(ctx); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

// TestInTurn: what takes the leftovers of one command leaves the next one alone.
func TestInTurn(t *testing.T) {
	for range 300 {
		_, c, err := Start(t.Context(), []string{"sh", "-c", "exit 3"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(t.Context()); !errors.Is(err, Status(3)) {
			t.Fatalf("it ended with %v", err)
		}
	}
}
