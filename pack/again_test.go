package pack

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// TestAgain: a pack of a pack says what the pack says: enumerations, instructions before ways, and where no kernel takes a probe.
func TestAgain(t *testing.T) {
	paths, err := filepath.Glob("../testdata/vmlinux-fixtures/*.gz")
	if err != nil || len(paths) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, p := range paths {
		t.Run(filepath.Base(p), func(t *testing.T) {
			z, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			r, err := gzip.NewReader(bytes.NewReader(z))
			if err != nil {
				t.Fatal(err)
			}
			d, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			var sites [2][]packfile.Site
			for i := range sites {
				img, err := dwarfloc.FromBytes(strings.TrimSuffix(p, ".gz"), d, nil)
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				if _, err := Write(context.Background(), img, Options{}, &b); err != nil {
					t.Fatalf("pack %d: %v", i+1, err)
				}
				d = b.Bytes()
				sites[i] = sitesOf(t, d)
			}
			for i := range sites[0] {
				if diff := cmp.Diff(sites[0][i], sites[1][i]); diff != "" {
					t.Errorf("site %d (-pack +pack of the pack):\n%s", i, diff)
				}
			}
		})
	}
}

// sitesOf reads the sites of a pack.
func sitesOf(t *testing.T, d []byte) []packfile.Site {
	t.Helper()
	f, err := open(d, "pack")
	if err != nil {
		t.Fatal(err)
	}
	refs, err := f.List(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]packfile.Site, len(refs))
	err = f.Each(refs, func(i int, s *packfile.Site) error {
		out[i] = *s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
