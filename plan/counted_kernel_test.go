package plan_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestDecidedByCode: what GCC's notes leave open the code decides. Loops count from 0 in steps of 8 to a number; a sum is of 32 bits, as "imul; shr" are that make it; the distance of two
// pointers is one of 64, as "sub; sar $3" begin its division by 40; and "and $0xf", on the line of the call, leaves four bits of a byte.
func TestDecidedByCode(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	img := testenv.Open(t, testenv.CloudVmlinux(t))
	for _, tt := range []struct{ definition, symbol, want string }{
		{"global_node_page_state item", "si_mem_available", "%rax >>u 3"},
		{"snmp_get_cpu_field64 offct", "__snmp6_fill_stats64.constprop.0", "(%rdx-8 >>u 3)+1"},
		{"fib_info_hashfn_1 init_val", "fib_create_info", "u32(%rsi * 0x61c88647) >>u 24"},
		{"node_tag_get offset", "radix_tree_delete_item", "(%rdx - %rcx)-40 / 8"},
		{"skb_record_rx_queue rx_queue", "packet_direct_xmit", "u32(%rax) modu u32(u32[%rbp+972])"},
		{"ip_fast_csum ihl", "ip_send_check", "u8[%rdi] & 15"},
		{"mark_chain_precision regno", "check_cond_jmp_op", "u8[%rbx+1] & 15"},
	} {
		p := plantest.New(t, img, tt.definition, plan.Options{})
		found := false
		for i := range p.Sites {
			s, v := &p.Sites[i], p.Sites[i].Args[0].Variable
			if s.Symbol != tt.symbol || v.Reason.Code != reasons.None || v.Loc.Text(img.Arch()) != tt.want {
				continue
			}
			if found = true; v.Loc.Doubt != reasons.None {
				t.Errorf("%s: %v: %s is doubtful", tt.definition, s, v.Loc.Text(img.Arch()))
			}
		}
		if !found {
			t.Errorf("%s: it is nowhere %s in %s", tt.definition, tt.want, tt.symbol)
		}
	}
}

// TestTruthOrByte: of a shifted number that is cut to a byte the code shows how far it is shifted, and not that the byte, and not its lowest bit, is meant.
func TestTruthOrByte(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a kernel image")
	}
	img := testenv.Open(t, testenv.CloudVmlinux(t))
	p := plantest.New(t, img, "trace_cgroup_notify_frozen val", plan.Options{})
	for i := range p.Sites {
		if v := p.Sites[i].Args[0].Variable; v.Reason.Code == reasons.None && v.Loc.Text(img.Arch()) == "(%rdx >>u 3) & 255" && v.Loc.Doubt == reasons.None {
			t.Errorf("%v is sure", &p.Sites[i])
		}
	}
}
