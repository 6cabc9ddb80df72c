package guest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// TestLimit checks that a guest that does not end is stopped, and that the error says why.
func TestLimit(t *testing.T) {
	k := kernels(t)[0]
	start := time.Now()
	_, err := k.Boot(t.Context(), &guest.Task{Limit: 500 * time.Millisecond})
	if !errors.Is(err, guest.ErrGuest) || !strings.Contains(err.Error(), "it took more than 500ms") {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestFailure checks that an error in the guest is Boot's error.
func TestFailure(t *testing.T) {
	k := kernels(t)[0]
	task := &guest.Task{Plans: []guest.Plan{{Definition: guest.Marker, Sites: []guest.Site{{Addr: 1}}, Instances: []guest.Instance{{}}}}}
	_, err := k.Boot(t.Context(), task)
	if !errors.Is(err, guest.ErrGuest) || !strings.Contains(err.Error(), "no instructions") {
		t.Errorf("the error is %v", err)
	}
}
