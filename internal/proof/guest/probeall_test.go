package guest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/proof/harm"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestProbeAll has kprobes at all instructions of functions that a workload runs, but where the table of refusals has them: the
// workload comes to the same, and the kernel says nothing.
func TestProbeAll(t *testing.T) {
	t.Parallel()
	onKernels(t, someOf(t, kernelsOfPC(t)), probeAll)
}

// kernelsOfPC returns the kernels for amd64.
func kernelsOfPC(t *testing.T) (out []testKernel) {
	t.Helper()
	if testing.Short() || raced.On {
		t.Skip("boots kernels, whose emulator the race detector slows down")
	}
	m := guest.AMD64
	if full() {
		m.Folders = slices.Concat(m.Folders, m.More)
	}
	for _, k := range guest.FindKernels(t, m) {
		out = append(out, testKernel{k})
	}
	return out
}

func probeAll(t *testing.T, k testKernel) {
	x := guest.Probing{Work: guest.Steady, Want: int(setting(t, "GUEST_FUNCTIONS", either(200, 20))), Together: 10}
	seed := setting(t, "GUEST_SEED", harm.Seed)
	x.Functions = shuffled(t, k.Vmlinux, seed)
	got := withProbe(t, k, &x, nil)
	t.Logf("seed %d: %d functions tried, %d run, %d probes, refused by the kernel %v, %d hits", seed, got.Tried, got.Ran, got.Probes, got.Refused, got.Hits)
	if got.Ran < x.Want || got.Hits < uint64(got.Probes)/10 {
		t.Error("the workload says nothing")
	}
}

// withProbe boots a kernel with what is to be probed.
func withProbe(t *testing.T, k testKernel, x *guest.Probing, files map[string]string) *guest.ProbedAll {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "probing")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	task := &guest.Task{Limit: 15 * time.Minute, Files: map[string]string{"/probing": path}, Commands: [][]string{{"/init", guest.ProbeAll, "/probing"}}}
	for name, from := range files {
		task.Files[name] = from
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	o := &r.Outputs[0]
	if o.Failed != "" {
		t.Fatalf("%s\n%s", o.Failed, o.Err)
	}
	got := &guest.ProbedAll{}
	if err := json.Unmarshal([]byte(o.Out), got); err != nil {
		t.Fatal(err)
	}
	t.Logf("the work:\n%s", got.Work)
	for _, w := range got.Wrong {
		t.Errorf("a probe at %s changes what the kernel does:\n%s", w, got.How)
	}
	for _, line := range got.Said {
		t.Errorf("the kernel says: %s", line)
	}
	return got
}

// shuffled returns functions of a kernel in an order that a seed gives, each with the instructions at which the library would allow a
// probe.
func shuffled(t *testing.T, vmlinux string, seed uint64) (out []guest.Function) {
	img := testenv.Open(t, vmlinux)
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	names, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(s *dwarfloc.Site) bool {
		return s.Kind != dwarfloc.SiteEntry || s.Section != ".text" || s.Offset != 0 || !worked(s.Function)
	})
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, s := range names[:min(int(either(6000, 700)), len(names))] {
		_, lo, hi, ok := inside.File(img).CodeRange(s.Addr)
		if !ok || lo != s.Addr || hi-lo > 1500 {
			continue
		}
		code, err := inside.File(img).Bytes(lo, hi-lo)
		if err != nil {
			t.Fatal(err)
		}
		f := guest.Function{Name: s.Function, At: fmt.Sprintf("%#x", lo)}
		for _, off := range instructions(code) {
			if table.At(lo+uint64(off)) == attachable.CauseNone {
				f.Offsets = append(f.Offsets, off)
			}
		}
		if len(f.Offsets) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// worked reports whether the work may run a function of that name: what is about files, memory, processes and sockets.
func worked(name string) bool {
	for _, part := range []string{"vfs_", "path", "lookup", "shmem", "unix_", "sock", "pipe", "ep_", "vma", "mmap", "fork", "copy_", "exit", "signal", "crypto", "sha", "dput", "dentry", "inode", "alloc", "free", "wake", "task", "seq_", "proc_", "page", "folio", "file", "fd", "link", "mnt", "skb", "timer", "futex", "exec", "load_elf", "mm_", "anon", "fault"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// instructions returns where the instructions of a function begin.
func instructions(code []byte) (out []int) {
	reading := flow.Read(insn.For("amd64"), code)
	reading.From(0)
	for off := range code {
		if is, from, _ := reading.At(off); reading.Known(off) && is == flow.Begins && from == off {
			out = append(out, off)
		}
	}
	return out
}
