package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/sites"
)

func TestParseSources(t *testing.T) {
	got, err := parseSources([]string{"linux", "/build=/src/linux"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sites.Sources{{Dir: "linux"}, {Dir: "/src/linux", Prefix: "/build"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "=x", "x="} {
		if _, err := parseSources([]string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
