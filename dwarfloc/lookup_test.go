package dwarfloc_test

import (
	"context"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestLookup finds names by C's rules of scope. What the names stand for is in
// testdata/vmlinux-fixtures/src: queue.c has statics called budget and ring_drops,
// page_reclaim in page.c has locals of these names, queue_shadow has three
// variables called level in nested blocks.
func TestLookup(t *testing.T) {
	for _, c := range []struct{ image, function, place, name, want string }{
		{"basic-gcc12-O2-dwarf5.elf", "queue_send", "queue_send", "budget", "global int [@0xffffffff81001000]"},
		{"basic-gcc12-O2-dwarf5.elf", "pkt_hold", "queue_send", "budget", "global int [@0xffffffff81001000]"},
		{"basic-gcc12-O2-dwarf5.elf", "page_reclaim", "page_reclaim", "budget", "local int not-at-site"},
		{"basic-gcc12-O0-dwarf5.elf", "queue_shadow", "queue_shadow+0xd", "level", "local u64 [%rsp+48]"},
		// Of the caller, not of the function that is inlined there.
		{"basic-gcc12-O2-dwarf5.elf", "pkt_hold", "queue_send", "ring", `local void no-such-variable: "ring"`},
		{"basic-gcc12-O2-dwarf5.elf", "queue_send", "queue_send", "pkt", "parameter struct pkt * %rsi"},
		{"basic-gcc12-O2-dwarf5.elf", "my_func_three_abcd", "call_my_funcs+0x45", "arg1", "parameter s32 optimized-out"},
		{"lib-gcc12-O2-dwarf5.elf", "session_write", "session_write", "session_current", "global u64 thread-local"},
		{"lib-gcc12-O2-dwarf5.elf", "session_write", "session_write", "rate", "parameter double vector-register: %xmm0"},
	} {
		img := testenv.Fixture(t, c.image)
		sites, err := img.Sites(context.Background(), dwarfloc.Name(c.function))
		if err != nil {
			t.Fatal(err)
		}
		got := "no such site"
		for _, s := range sites {
			if s.SymbolOffset() != c.place {
				continue
			}
			v, err := s.Lookup(c.name)
			if err != nil {
				t.Fatal(err)
			}
			got = v.Role.String() + " " + v.Type.String() + " "
			if v.Located() {
				got += v.Loc.Text(img.Arch())
			} else {
				got += v.Reason.String()
			}
			break
		}
		if got != c.want {
			t.Errorf("%s: %s at %s: %s: got %q, want %q", c.image, c.function, c.place, c.name, got, c.want)
		}
	}
}

// TestPointee: the object of an implicit pointer resolves where the pointer does
// not.
func TestPointee(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	sites, err := img.Sites(context.Background(), dwarfloc.Name("cursor_step"))
	if err != nil || len(sites) == 0 {
		t.Fatalf("%d sites, %v", len(sites), err)
	}
	v, err := sites[0].Lookup("cur")
	if err != nil || v.Reason.Code != reasons.ImplicitPointer {
		t.Fatalf("cur: %v, %v", v.Reason, err)
	}
	o, err := compute.Pointee(v)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := o.Type.String()+" "+o.Loc.Text(img.Arch()), "struct cursor {%rsi:8, %rsi + %rdx:8, %rdi:8}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if o.Loc.Rule == rule.None {
		t.Error("the object has a location, and no rule says how it was chosen")
	}
	if _, err := compute.Pointee(o); err == nil {
		t.Error("a location that is no implicit pointer has a pointee")
	}
}

// TestParamsOnce: no parameter is listed twice, and asking again gives the same.
func TestParamsOnce(t *testing.T) {
	for _, name := range fixtures.Names() {
		img := testenv.Fixture(t, name)
		sites, err := img.Sites(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sites {
			var texts [2]string
			for i := range texts {
				params, err := s.Params()
				if err != nil {
					t.Fatal(err)
				}
				seen := make(map[string]bool)
				for _, v := range params {
					if seen[v.Name] && v.Name != "" {
						t.Errorf("%s: %v: parameter %s twice", name, s, v.Name)
					}
					seen[v.Name] = true
					texts[i] += v.Name + " " + v.Type.String() + " " + v.Loc.Text(img.Arch()) + " " + v.Reason.String() + "\n"
				}
			}
			if texts[0] != texts[1] {
				t.Errorf("%s: %v: first\n%sthen\n%s", name, s, texts[0], texts[1])
			}
		}
	}
}
