package probe

import "testing"

// TestTimes: numbers with a unit of time are nanoseconds, and print as they were written.
func TestTimes(t *testing.T) {
	for text, want := range map[string]uint64{
		"7ns": 7, "250us": 250_000, "1ms": 1e6, "1.5ms": 1_500_000, "2s": 2e9, "1e3us": 1e6, "0.5s": 5e8, "9223372036s": 9223372036e9,
	} {
		d, err := Parse("if=x>" + text + "; f")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if e := d.Options.If.B; e.Number != want || e.String() != text {
			t.Errorf("%s is %d, %v", text, e.Number, e)
		}
	}
	for _, text := range []string{"1h", "1m", "1msec", "1sx", "9223372037s", "1e30s", "0x1ms", "01ms1"} {
		if d, err := Parse("if=x>" + text + "; f"); err == nil {
			t.Errorf("%s is %v", text, d.Options.If)
		}
	}
}
