package kernelerr

import (
	"strings"
	"testing"
)

func TestParanoid(t *testing.T) {
	for setting, want := range map[string]string{
		"-1\n": "", "2\n": "", "": "", "x\n": "", "3\n": "kernel.perf_event_paranoid is 3, ", "4\n": "kernel.perf_event_paranoid is 4, ",
	} {
		if got := paranoid(setting); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", setting, got, want)
		}
	}
}
