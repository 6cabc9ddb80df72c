package main

import (
	"os"
	"strings"
	"testing"
)

func TestHas(t *testing.T) {
	s := &Series{only: strings.Split("gcc-12 -O2,clang", ",")}
	for name, want := range map[string]bool{"c gcc-12 -O2 -no-pie": true, "cpp clang++-14 -O0": true, "c gcc-12 -O3": false} {
		if got := s.Has(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if all := (&Series{only: strings.Split("", ",")}); !all.Has("any") {
		t.Error("without texts, all are chosen")
	}
}

// TestFolder: a folder that was asked for is kept.
func TestFolder(t *testing.T) {
	given := t.TempDir()
	for _, dir := range []string{given, ""} {
		var got string
		err := in("series", dir, func(dir string) error {
			got = dir
			_, err := os.Stat(dir)
			return err
		})
		if err != nil || dir != "" && got != dir {
			t.Fatalf("%q: %q, %v", dir, got, err)
		}
		if _, err := os.Stat(got); (err == nil) != (dir != "") {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
