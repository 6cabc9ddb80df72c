package dwarfloc

import (
	"testing"
)

// TestBareSite: a site that was made of an address alone, as for a plan that is
// attached without its image, prints what is known of it.
func TestBareSite(t *testing.T) {
	for _, c := range []struct {
		site Site
		want string
	}{
		{Site{Addr: 0xffffffff81000060}, "0xffffffff81000060"},
		{Site{Addr: 0xffffffff81000065, Symbol: "pkt_hold", Offset: 5}, "pkt_hold+0x5"},
	} {
		if got := c.site.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
