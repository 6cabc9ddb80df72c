package guest_test

import (
	"context"
	"encoding/binary"
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
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestPrediction attaches a probe at each of a random sample of an image's sites, and
// compares the kernel's answers with the predictions of package attachable: whether it accepts the
// probe, and whether its list of kprobes says that ftrace or a jump runs it. GUEST_SITES is
// the size of the sample, by default 500 and with GUESTS_FULL=1 2,000; GUEST_SEED its seed; by default the seed depends on the image, so
// that the same kernel always gets the same sample.
func TestPrediction(t *testing.T) {
	t.Parallel()
	eachKernel(t, func(t *testing.T, k testKernel) { predict(t, k, setting(t, "GUEST_SITES", either(2000, 500))) })
}

func predict(t *testing.T, k testKernel, size uint64) {
	t.Helper()
	img := testenv.Open(t, k.Vmlinux)
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	hash := fnv.New64a()
	hash.Write([]byte(img.BuildID()))
	seed := setting(t, "GUEST_SEED", hash.Sum64())
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Two sites may share an address, and it is addresses that are probed.
	slices.SortFunc(sites, func(a, b *dwarfloc.Site) int { return int(int64(a.Addr - b.Addr)) })
	sites = slices.CompactFunc(sites, func(a, b *dwarfloc.Site) bool { return a.Addr == b.Addr })
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	all := len(sites)
	sites = slices.DeleteFunc(sites, func(s *dwarfloc.Site) bool { return hangs(img, s.Addr) || hangs(img, s.Addr+next(k)) })
	sites = sites[:min(int(size), all)]
	task := &guest.Task{KASLR: slices.ContainsFunc(guest.Machines, func(m guest.Machine) bool { return m.GOARCH == k.GOARCH }), Limit: 2*time.Minute + time.Duration(len(sites))*200*time.Millisecond}
	// Try what is next after each site's address too: mostly the middle of an instruction. It comes
	// much later than the address, so that no probe there keeps the site's from becoming a jump.
	tried := make([]*dwarfloc.Site, 0, 2*len(sites))
	for i, s := range sites {
		other := sites[(i+len(sites)/2)%len(sites)]
		tried = append(tried, s, other)
		task.Sites = append(task.Sites, s.Addr, other.Addr+next(k))
	}
	patched, err := readPatches(k, img)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if len(r.Attach) != len(task.Sites) {
		t.Fatalf("%d answers for %d addresses", len(r.Attach), len(task.Sites))
	}
	refused, wrong, explained := 0, 0, 0
	causes := make(map[string]int)
	methods, byProcessor := make(map[string]int), 0
	for _, a := range r.Attach {
		s, addr := tried[a.Site], task.Sites[a.Site]
		cause := table.At(addr)
		if a.Errno != 0 {
			refused++
			causes[cause.String()]++
		}
		wrongly := (a.Errno != 0) != (cause != attachable.CauseNone)
		if wrongly && a.Site%2 == 1 && patched.covers(addr) {
			explained++
			continue
		}
		if wrongly {
			wrong++
			t.Errorf("%v at %#x (%s): predicted %q, the kernel's answer is %q", s, addr, s.Section, cause, a.Text)
			continue
		}
		if method := table.Method(addr); a.Errno == 0 && method != attachable.MethodNone {
			switch want := stateOf(method); {
			case a.State == want:
				methods[method.String()]++
			case patched.within(addr):
				byProcessor++
			default:
				wrong++
				t.Errorf("%v at %#x: predicted %v, which is %q; the kernel lists the probe with %q", s, addr, method, want, a.State)
			}
		}
		got, want := unix.Errno(a.Errno), errnoOf(k, cause)
		unknown := s.Section == exitText && got == unix.ENOENT && want == unix.EINVAL
		if got != want && !unknown {
			t.Errorf("%v at %#x: %s: the kernel's answer is %v, want %v", s, addr, cause, got, want)
		}
	}
	t.Logf("seed %d: %d of %d sites, each and what is next: %d attached, %d refused (%v), %d mispredicted; %d differ in code that the kernel has patched; attached by %v, %d differ by processor; %v",
		seed, len(sites), all, len(task.Sites)-refused, refused, causes, wrong, explained, methods, byProcessor, time.Since(start).Round(time.Millisecond))
}

// patches are the instructions that the kernel replaces when it boots, by address, with
// their sizes. The kernel decodes the code that runs: in the middle of an indirect call of
// the image there may be a NOP, which takes a probe, and the second of three NOPs may be the
// middle of STAC. No site is there.
type patches map[uint64]uint64

func (p patches) covers(addr uint64) bool {
	for back := uint64(1); back < 64; back++ {
		if p[addr-back] > back {
			return true
		}
	}
	return false
}

// within reports whether a jump in place of the instructions at an address may replace one of them.
func (p patches) within(addr uint64) bool {
	const most = 5 - 1 + 15 // bytes: the last instruction begins before the jump ends
	for a := addr; a < addr+most; a++ {
		if _, ok := p[a]; ok {
			return true
		}
	}
	return p.covers(addr)
}

// stateOf returns what the kernel's list of kprobes says of a probe that it runs by a method
// (report_probe in kernel/kprobes.c).
func stateOf(m attachable.Method) string {
	switch m.String() {
	case "ftrace":
		return "[FTRACE]"
	case "jump":
		return "[OPTIMIZED]"
	}
	return "["
}

// readPatches reads the tables of paravirtual calls (arch/x86/include/asm/
// paravirt_types.h, struct paravirt_patch_site; until Linux 6.7) and of alternatives
// (arch/x86/include/asm/alternative.h, struct alt_instr, whose flags grew in 6.3).
func readPatches(k testKernel, img *dwarfloc.Image) (patches, error) {
	type table struct {
		from, to    string
		entry, size int
		relative    bool
	}
	var tables []table
	switch {
	case k.GOARCH != "amd64": // all instructions have the same size
	case k.old():
		tables = []table{
			{"__parainstructions", "__parainstructions_end", 16, 9, false},
			{"__alt_instructions", "__alt_instructions_end", 12, 10, true},
		}
	default:
		tables = []table{{"__alt_instructions", "__alt_instructions_end", 14, 12, true}}
	}
	out := make(patches)
	for _, table := range tables {
		marks, err := inside.File(img).SymbolAddresses(table.from, table.to)
		if err != nil {
			return nil, err
		}
		lo, hi := marks[table.from], marks[table.to]
		d, err := inside.File(img).Bytes(lo, hi-lo)
		if err != nil {
			return nil, err
		}
		for at := 0; at+table.entry <= len(d); at += table.entry {
			addr := binary.LittleEndian.Uint64(d[at:])
			if table.relative {
				addr = lo + uint64(at) + uint64(int64(int32(addr)))
			}
			out[addr] = max(out[addr], uint64(d[at+table.size]))
		}
	}
	return out, nil
}

// next is how far the next address is where an instruction may begin, but on amd64, arm64 and arm, whose kernels
// are also asked about addresses where none can.
func next(k testKernel) uint64 {
	switch k.GOARCH {
	case "s390x", "riscv64":
		return 2
	case "loong64":
		return 4
	}
	return 1
}

// illegal are the causes for which a kernel's error is EILSEQ: arch_prepare_kprobe of each architecture, and
// check_ftrace_location in kernel/kprobes.c, with CONFIG_KPROBES_ON_FTRACE.
var illegal = map[string][]string{
	"amd64":   {"mid-instruction", "in-ftrace", "cannot-step"},
	"386":     {"mid-instruction", "in-ftrace"},
	"s390x":   {"in-ftrace"},
	"ppc64le": {"in-ftrace"},
	"riscv64": {"mid-instruction", "in-ftrace"},
	"loong64": {"mid-instruction"},
}

// exitText is behind _einittext, where kernels without CONFIG_KALLSYMS_ALL know no symbol of what they have freed: for them no function is
// there (is_ksym_addr in kernel/kallsyms.c, _kprobe_addr in kernel/kprobes.c).
const exitText = ".exit.text"

// errnoOf returns the kernel's error for a cause.
func errnoOf(k testKernel, c attachable.Cause) unix.Errno {
	switch {
	case c == attachable.CauseNone:
		return 0
	case k.GOARCH == "amd64" && k.old() && c.String() == "cannot-step":
		return unix.EINVAL // INT3 is found out later
	case slices.Contains(illegal[k.GOARCH], c.String()):
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
