package peers

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// perf probe -D writes kprobe_events definitions: "p:probe/vfs_read vfs_read+0
// file=%di:x64". It is right about parameters in registers at a function's entry.
// Its faults elsewhere, seen with perf 6.1:
//   - it reads a value that is register plus offset (DW_OP_breg7 6, DW_OP_stack_value)
//     as memory at that address;
//   - it ignores location list entries with equal addresses, whatever their views;
//   - it gives up a whole definition if one site has an operation it does not know;
//   - it does not know DW_OP_entry_value at the entry, nor DW_OP_implicit_pointer.
var perfLine = regexp.MustCompile(`^p:\S+ ([^\s+]+)\+0 .*?\b(\w+)=%(\w+):`)

// perfRegisters maps our names of registers to perf's, from arch/x86/include/asm/ptrace.h
// (regoffset_table).
var perfRegisters = map[string]string{
	"%rax": "ax", "%rbx": "bx", "%rcx": "cx", "%rdx": "dx", "%rsi": "si", "%rdi": "di", "%rbp": "bp", "%rsp": "sp",
	"%r8": "r8", "%r9": "r9", "%r10": "r10", "%r11": "r11", "%r12": "r12", "%r13": "r13", "%r14": "r14", "%r15": "r15",
}

// TestPerfEntries compares out-of-line entries whose argument is in a register.
func TestPerfEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("runs perf on a kernel image")
	}
	image := testenv.Vmlinux(t)
	perf := testenv.Tool(t, "perf")
	img, err := dwarfloc.Open(image, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	compared := 0
	for _, definition := range []string{"tcp_* sk", "vfs_* file", "sk_* sk", "blk_* q", "netif_* dev", "do_* dfd"} {
		cmd := exec.Command(perf, "probe", "-k", image, "--no-inlines", "--max-probes=100000", "-D", definition)
		out, err := cmd.Output()
		if err != nil || len(out) == 0 {
			t.Logf("perf probe -D '%s' gives nothing: %v", definition, err)
			continue
		}
		theirs := make(map[string]map[string]bool) // symbol → registers
		for line := range strings.Lines(string(out)) {
			if m := perfLine.FindStringSubmatch(line); m != nil {
				if theirs[m[1]] == nil {
					theirs[m[1]] = make(map[string]bool)
				}
				theirs[m[1]][m[3]] = true
			}
		}
		def, err := probe.Parse("inlines=no;" + definition)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := plan.New(context.Background(), img, def, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range plan.Sites {
			s := &plan.Sites[i]
			v := s.Args[0].Variable
			if v.Loc.Kind != loc.KindRegister || v.Role != dwarfloc.RoleParameter || theirs[s.Symbol] == nil {
				continue
			}
			compared++
			if reg := perfRegisters[v.Loc.Text(img.Arch())]; !theirs[s.Symbol][reg] {
				t.Errorf("%s: %s is in %s, perf says %v", s.Site, v.Name, reg, theirs[s.Symbol])
			}
		}
	}
	t.Logf("%d entries compared", compared)
	if compared < 200 {
		t.Errorf("only %d entries were compared", compared)
	}
}
