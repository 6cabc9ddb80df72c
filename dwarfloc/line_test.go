package dwarfloc

import (
	"context"
	"encoding/binary"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/line"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestFilesAgainstDelve compares the file names of all units with delve's reader.
func TestFilesAgainstDelve(t *testing.T) {
	for _, name := range fixtures.Names() {
		img := openFixture(t, name)
		compared := 0
		for i := range img.units {
			u := &img.units[i]
			if err := u.load(); err != nil {
				t.Fatal(err)
			}
			if !u.hasStmtList {
				continue
			}
			h, err := line.ParseAll(img.line, img.lineStr, func(string, ...any) {}, 0, false, 8)
			_ = h
			_ = err
			info := delveLines(img, u)
			if info == nil {
				t.Fatalf("%s: delve refuses the line table at %#x", name, u.stmtList)
			}
			first := 0 // delve numbers from 0; DWARF before version 5 from 1
			if u.version < 5 {
				first = 1
			}
			for j, f := range info.FileNames {
				want := f.Path
				if !path.IsAbs(want) {
					want = path.Join(u.compDir, want)
				}
				got := u.file(uint64(j + first))
				if !path.IsAbs(got) {
					got = path.Join(u.compDir, got)
				}
				if got != path.Clean(want) || got == "" {
					t.Errorf("%s: unit at %#x, file %d: %q, delve has %q", name, u.off, j+first, got, want)
				}
				compared++
			}
			if got := u.file(1 << 40); got != "" {
				t.Errorf("%s: a file number outside the table is %q", name, got)
			}
		}
		if compared < 1 {
			t.Errorf("%s: no file names compared", name)
		}
	}
}
