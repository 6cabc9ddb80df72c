package attachable

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestComesBack: shapes of bodies that a Debian 6.1 vmlinux has, cut down to their
// branches. In x86 90 is nop, 75 jne, eb jmp.
func TestComesBack(t *testing.T) {
	type codeAt map[uint64]string
	for _, tt := range []struct {
		name, arch     string
		parts          codeAt
		from           uint64
		again, checked bool
	}{
		{"a loop (kfree_skb_list)", "amd64", codeAt{0x10: "9075fd"}, 0x10, true, true},
		{"its second instruction", "amd64", codeAt{0x10: "9075fd"}, 0x11, true, true},
		{"after the loop", "amd64", codeAt{0x10: "9075fd90"}, 0x13, false, true},
		{"before the loop", "amd64", codeAt{0x0f: "909075fd"}, 0x0f, false, true},
		{"itself", "amd64", codeAt{0x10: "ebfe"}, 0x10, true, true},
		{"a loop in two parts (__refcount_add_not_zero)", "amd64",
			codeAt{0x10: "90750d", 0x20: "ebee"}, 0x10, true, true},
		{"a loop with a call", "amd64", codeAt{0x10: "e80000000075f9"}, 0x10, true, true},
		{"a loop entered in its middle (ebitmap_next_positive)", "amd64",
			codeAt{0x10: "907501", 0x13: "9075fa"}, 0x13, true, true},
		{"a jump that joins another entry (sock_flag)", "amd64",
			codeAt{0x10: "90", 0x20: "ebee"}, 0x10, false, true},
		{"a jump to an address outside the body (skb_network_header)", "amd64",
			codeAt{0x20: "ebee"}, 0x10, false, true},
		{"a loop of the caller (i8042_wait_write)", "amd64",
			codeAt{0x10: "90750d", 0x30: "ebde"}, 0x10, false, true},
		{"a return before the jump", "amd64", codeAt{0x10: "90c3ebfc"}, 0x10, false, true},
		{"an indirect jump", "amd64", codeAt{0x10: "ffe0ebfc"}, 0x10, false, false},
		{"a loop beside an indirect jump", "amd64", codeAt{0x10: "7502ebfcffe0"}, 0x10, true, true},
		{"an unknown instruction", "amd64", codeAt{0x10: "0675fd"}, 0x10, false, false},
		{"an unknown instruction elsewhere", "amd64", codeAt{0x10: "90c306"}, 0x10, false, true},
		{"an instruction that is cut short", "amd64", codeAt{0x10: "0f85"}, 0x10, false, false},
		{"nothing", "amd64", nil, 0x10, false, true},

		// nop; cbnz x1, .-4 / nop; b.ne .+0xc; nop / b .-0x10 / nop; b.ne .+0xc; b .-0x20
		{"a loop", "arm64", codeAt{0x10: "1f2003d5e1ffffb5"}, 0x10, true, true},
		{"a loop in two parts", "arm64",
			codeAt{0x10: "1f2003d561000054", 0x20: "fcffff17"}, 0x10, true, true},
		{"a loop of the caller", "arm64",
			codeAt{0x10: "1f2003d561000054", 0x30: "f8ffff17"}, 0x10, false, true},
		{"an indirect jump", "arm64", codeAt{0x10: "a0001fd6"}, 0x10, false, false},
		{"a branch not known", "arm64", codeAt{0x10: "a13f0174"}, 0x10, false, false},
	} {
		b := body{next: insn.For(tt.arch).Next}
		for lo := uint64(0); lo < 0x40; lo++ {
			if code, ok := tt.parts[lo]; ok {
				b.parts = append(b.parts, part{lo: lo, code: dwarftest.Hex(t, code)})
			}
		}
		if again, checked := b.comesBackTo(tt.from); again != tt.again || checked != tt.checked {
			t.Errorf("%s, %s: again %v, checked %v", tt.arch, tt.name, again, checked)
		}
	}
}

// TestApart: ranges out of order, empty, twice, inside others.
func TestApart(t *testing.T) {
	got := apart([]span{{40, 50}, {10, 20}, {5, 5}, {10, 20}, {15, 30}, {30, 35}, {42, 45}})
	want := []span{{10, 20}, {20, 30}, {30, 35}, {40, 50}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(span{})); diff != "" {
		t.Error(diff)
	}
}

// TestRepeatsVmlinux: a retry loop of a kernel begins where its body does, and bodies
// without a loop never fire again, wherever their branches go.
func TestRepeatsVmlinux(t *testing.T) {
	img, err := dwarfloc.Open(testenv.Vmlinux(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	table, err := New(img)
	if err != nil {
		t.Fatal(err)
	}
	for name, loops := range map[string]bool{"__refcount_add_not_zero": true, "skb_network_header": false, "IS_ERR": false, "sock_flag": false} {
		sites, err := img.Sites(context.Background(), dwarfloc.Name(name))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, s := range sites {
			again, checked, err := table.Repeats(s)
			if err != nil || !checked {
				t.Errorf("%v: checked %v, %v", s, checked, err)
			}
			if again {
				count++
			}
		}
		if (count > 0) != loops || len(sites) == 0 {
			t.Errorf("%s: %d of %d sites fire again", name, count, len(sites))
		}
	}
}
