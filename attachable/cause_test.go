package attachable

import (
	"os"
	"strings"
	"testing"
)

// TestCauses: each cause has a name and a sentence, which its documentation lists, and
// a value that is not a cause prints too.
func TestCauses(t *testing.T) {
	source, err := os.ReadFile("cause.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for c := CauseNone + 1; c < causeCount; c++ {
		if c.String() == "" || c.Describe() == "" || names[c.String()] {
			t.Errorf("cause %d is %q: %q", uint8(c), c, c.Describe())
		}
		names[c.String()] = true
		if line := "//   - " + c.String() + ": " + c.Describe() + "\n"; !strings.Contains(string(source), line) {
			t.Errorf("the documentation of Cause lacks the line\n%s", line)
		}
	}
	if c := Cause(99); c.String() != "Cause(99)" || c.Describe() != "Cause(99)" {
		t.Errorf("cause 99 is %q: %q", c, c.Describe())
	}
}
