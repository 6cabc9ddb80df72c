package screen

import (
	"bytes"
	"testing"
)

// TestHarmless puts every byte everywhere in texts of blanks and tildes, the first and last that are
// printed as they are.
func TestHarmless(t *testing.T) {
	for _, filler := range []byte{' ', '~', 'a', '\n'} {
		for n := range 20 {
			for at := range n {
				for c := range 256 {
					b := bytes.Repeat([]byte{filler}, n)
					b[at] = byte(c)
					want := c >= ' ' && c <= '~' || c == '\n' || c == '\t'
					if got := harmless(b); got != want {
						t.Fatalf("%q: %v", b, got)
					}
				}
			}
		}
	}
}
