package attachable

import (
	"context"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

const fixture = "basic-gcc12-O2-dwarf5.elf"

// TestSites: the causes of all sites of a toy kernel, whose source puts functions into
// each section and table of the kernel's.
func TestSites(t *testing.T) {
	img := testenv.Fixture(t, fixture)
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sites {
		if c := table.At(s.Addr); c != CauseNone {
			got = append(got, c.String()+" "+s.SymbolOffset())
		}
	}
	sort.Strings(got)
	want := strings.Fields(strings.ReplaceAll(`
entry-code·page_gate entry-code·page_gate entry-code·page_gate
freed-init·page_cache_exit freed-init·page_cache_exit freed-init·page_cache_exit+0x7
freed-init·page_cache_init freed-init·page_cache_init+0x7 freed-init·page_cache_init+0x7
kprobes-text·page_trap kprobes-text·page_trap kprobes-text·page_trap
noinstr·page_enter noinstr·page_enter noinstr·page_enter
nokprobe·page_forbidden nokprobe·page_forbidden nokprobe·page_forbidden
static-call·patch_call`, "\n", " "))
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "·", " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// TestAddresses: what tables list, and the middle of instructions.
func TestAddresses(t *testing.T) {
	img := testenv.Fixture(t, fixture)
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.jumps) != 1 || len(table.statics) != 1 || len(table.bugs) != 1 {
		t.Fatalf("%d jump labels, %d static calls, %d bugs; the fixture has one of each", len(table.jumps), len(table.statics), len(table.bugs))
	}
	bug := uint64(0)
	for bug = range table.bugs {
	}
	all, err := inside.File(img).SymbolAddresses("queue_send")
	entry, ok := all["queue_send"]
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	second := entry + table.instructionSize(entry)
	for _, tt := range []struct {
		what string
		addr uint64
		want Cause
	}{
		{"a jump label", table.jumps[0], causeJumpLabel},
		{"inside a jump label", table.jumps[0] + 1, causeJumpLabel},
		{"a static call", table.statics[0], causeStaticCall},
		{"a bug", bug, causeBug},
		{"a function", entry, CauseNone},
		{"its second instruction", second, CauseNone},
		{"before it", second - 1, causeMidInstruction},
		{"data", inside.File(img).Sections()[len(inside.File(img).Sections())-1].Addr, causeNotCode},
		{"nowhere", 0x1000, causeNotCode},
	} {
		if tt.addr == second-1 && second-1 == entry {
			t.Fatal("the first instruction has one byte")
		}
		if got := table.At(tt.addr); got != tt.want {
			t.Errorf("%s, at %#x: %q, want %q", tt.what, tt.addr, got, tt.want)
		}
	}
}

// TestARM64Image: every instruction has four bytes, and loops are looked for.
func TestARM64Image(t *testing.T) {
	img := testenv.Fixture(t, "object-clang14-arm64-O0-dwarf5.o")
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := img.Sites(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sites {
		for off, want := range map[uint64]Cause{0: CauseNone, 1: causeMidInstruction, 2: causeMidInstruction, 4: CauseNone} {
			if got := table.At(s.Addr + off); got != want {
				t.Errorf("%v+%d: %q, want %q", s, off, got, want)
			}
			if got := table.Method(s.Addr + off); got != MethodNone {
				t.Errorf("%v+%d: %v, in a file whose tables are not read", s, off, got)
			}
		}
	}
	if len(sites) == 0 {
		t.Error("no sites")
	}
}

// TestTraps: since Linux 6.9 kprobes refuse what raises an exception, also where no table has it.
func TestTraps(t *testing.T) {
	table, err := New(testenv.Fixture(t, fixture))
	if err != nil {
		t.Fatal(err)
	}
	bug := uint64(0)
	for bug = range table.bugs {
	}
	clear(table.bugs)
	for release, want := range map[[2]int]Cause{{6, 1}: CauseNone, {6, 9}: causeCannotStep, {7, 2}: causeCannotStep} {
		table.release = release
		if got := table.At(bug); got != want {
			t.Errorf("%d: %q, want %q", release, got, want)
		}
	}
}

// TestARM64Areas: in a kernel for arm64, the second word for ftrace at a function's beginning, which becomes its call, and
// what handles interrupts take no probe (asked of live kernels).
func TestARM64Areas(t *testing.T) {
	path := testenv.VmlinuxOf(t, "arm64")
	if path == "" {
		t.Skip("another kernel image was chosen")
	}
	img := testenv.Open(t, path)
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	all, err := inside.File(img).SymbolAddresses("vfs_read", "gic_handle_irq")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for addr, want := range map[uint64]Cause{
		all["vfs_read"]: CauseNone, all["vfs_read"] + 4: causeInFtrace, all["vfs_read"] + 8: CauseNone, all["gic_handle_irq"]: causeEntry,
	} {
		if got := table.At(addr); got != want {
			t.Errorf("%#x: %q, want %q", addr, got, want)
		}
	}
}
