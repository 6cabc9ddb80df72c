package oracle_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/oracle"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// Both readers must agree on every site and parameter of every fixture.
func TestFixtures(t *testing.T) {
	for _, name := range append(fixtures.Names(), fixtures.Foreign()...) {
		t.Run(name, func(t *testing.T) {
			b, err := fixtures.Bytes(name)
			if err != nil {
				t.Fatal(err)
			}
			img, err := dwarfloc.FromBytes(name, b, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			file, err := oracle.FromBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			f := compare(t, img, file, file.Units, false)
			slack := 0
			if slices.Contains(fixtures.Foreign(), name) {
				slack = 1 // of toy_log on armhf, which has variable arguments: its first is stored beside them later
			}
			report(t, f, slack)
			if f.Totals["inlined parameters"] == 0 || f.Totals["out-of-line parameters"] == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// sampleSize is how many units of a vmlinux are compared without ORACLE_FULL=1.
const sampleSize = 150

// The same for a kernel. ORACLE_FULL=1 compares all units, ORACLE_SEED=N chooses the sample.
func TestVmlinux(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a whole vmlinux")
	}
	path := testenv.Vmlinux(t)
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	file, err := oracle.Open(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	units := file.Units
	if os.Getenv("ORACLE_FULL") != "1" {
		seed := uint64(time.Now().UnixNano())
		if s := os.Getenv("ORACLE_SEED"); s != "" {
			if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %d of %d units, ORACLE_SEED=%d", path, min(sampleSize, len(units)), len(units), seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		units = slices.Clone(units) // the reader looks units up in their order
		rng.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
		units = units[:min(sampleSize, len(units))]
	}
	f := compare(t, img, file, units, false)
	slack := 0
	if len(units) < len(file.Units) {
		slack = 20 // a unit may have many: one of a compressor in Linux 6.12 has 17
	}
	report(t, f, slack)
	if f.Totals["inlined parameters"] == 0 {
		t.Error("nothing was compared")
	}
}
