package guest_test

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/guest"
)

// TestPrediction attaches a probe at each of a random sample of an image's sites, and
// compares what the kernel says with what package attachable has said. GUEST_SITES
// gives another size of the sample, GUEST_SEED another sample. The usual seed is the
// image's: the same kernel gets the same sample each time.
func TestPrediction(t *testing.T) {
	k, img := kernel(t)
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	hash := fnv.New64a()
	hash.Write([]byte(img.BuildID()))
	size, seed := setting(t, "GUEST_SITES", 400), setting(t, "GUEST_SEED", hash.Sum64())
	sites, err := img.Sites(context.Background(), dwarfloc.Every{})
	if err != nil {
		t.Fatal(err)
	}
	// Two sites may share an address, and it is addresses that are probed.
	slices.SortFunc(sites, func(a, b *dwarfloc.Site) int { return int(int64(a.Addr - b.Addr)) })
	sites = slices.CompactFunc(sites, func(a, b *dwarfloc.Site) bool { return a.Addr == b.Addr })
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	all := len(sites)
	sites = sites[:min(int(size), all)]
	task := &guest.Task{KASLR: true, Limit: 2*time.Minute + time.Duration(len(sites))*200*time.Millisecond}
	for _, s := range sites {
		task.Sites = append(task.Sites, s.Addr)
	}
	start := time.Now()
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if len(r.Attach) != len(sites) {
		t.Fatalf("%d answers for %d sites", len(r.Attach), len(sites))
	}
	refused, wrong := 0, 0
	causes := make(map[string]int)
	for _, a := range r.Attach {
		s := sites[a.Site]
		cause := table.At(s.Addr)
		if a.Errno != 0 {
			refused++
			causes[cause.String()]++
		}
		if (a.Errno != 0) != (cause != attachable.None) {
			wrong++
			t.Errorf("%v at %#x (%s): the image says %q, the kernel %q", s, s.Addr, s.Section, cause, a.Text)
			continue
		}
		if got, want := unix.Errno(a.Errno), errnoOf(cause); got != want {
			t.Errorf("%v at %#x: %s: the kernel's answer is %v, want %v", s, s.Addr, cause, got, want)
		}
	}
	t.Logf("seed %d: %d of %d addresses of sites: %d attached, %d refused (%v), %d mispredicted; %v",
		seed, len(sites), all, len(sites)-refused, refused, causes, wrong, time.Since(start).Round(time.Millisecond))
}

// errnoOf is what the kernel answers for a cause.
func errnoOf(c attachable.Cause) unix.Errno {
	switch c {
	case attachable.None:
		return 0
	case attachable.MidInstruction, attachable.InFtrace:
		return unix.EILSEQ
	}
	return unix.EINVAL
}

func setting(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
