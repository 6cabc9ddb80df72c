package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// describe prints a plan, one line per site.
func describe(p *plan.Plan) string {
	var b strings.Builder
	for _, s := range p.Sites {
		fmt.Fprintf(&b, "%s #%d", s.Site, s.Instance)
		for _, a := range s.Args {
			text := a.Unfetched.String()
			if a.Fetched() {
				text = a.Loc.Text(p.Image.Arch())
			}
			fmt.Fprintf(&b, " %s=%s", a.Name, text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	p, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "my_func_*_abcd arg1", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// What the compiler made of testdata/vmlinux-fixtures/src: three functions, each
	// out of line and inlined; one inlined argument was optimized away.
	want := `my_func_one_abcd #0 arg1=%rdi
my_func_one_abcd inlined in call_my_funcs #1 arg1=%rsi
my_func_one_abcd inlined in call_my_funcs+0x11 #2 arg1=7
my_func_one_abcd inlined in call_my_funcs+0x19 #3 arg1=[%rsp+8]
my_func_three_abcd #4 arg1=%rdx
my_func_three_abcd inlined in call_my_funcs+0x3a #5 arg1=%rdi
my_func_three_abcd inlined in call_my_funcs+0x3e #6 arg1=(%rcx + %r8) + %r9
my_func_three_abcd inlined in call_my_funcs+0x45 #7 arg1=optimized-out
my_func_two_abcd #1 arg1=%rsi
my_func_two_abcd inlined in call_my_funcs+0x20 #8 arg1=%rsi * 24
my_func_two_abcd inlined in call_my_funcs+0x2e #9 arg1=3
`
	if diff := cmp.Diff(want, describe(p)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	for i, in := range p.Instances {
		if in.Number != i {
			t.Errorf("instance %d has number %d", i, in.Number)
		}
		for _, s := range in.Sites {
			if p.Sites[s].Instance != i {
				t.Errorf("instance %d names site %d, whose instance is %d", i, s, p.Sites[s].Instance)
			}
		}
	}
	again, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", "my_func_*_abcd arg1", plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Instances {
		if p.Instances[i].Prologue.String() != again.Instances[i].Prologue.String() {
			t.Errorf("instance %d differs between two runs", i)
		}
	}
}

func TestMissing(t *testing.T) {
	const def = "my_func_three_abcd arg1"
	p, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", def, plan.Options{Missing: plan.MissingSkip})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Sites[3]; got.Instance != -1 || len(p.Instances) != 3 {
		t.Errorf("with Skip: site 3 has instance %d of %d, want -1 of 3", got.Instance, len(p.Instances))
	}
	_, err = plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", def, plan.Options{Missing: plan.MissingFail})
	if !errors.Is(err, plan.ErrMissingArgument) {
		t.Errorf("with Fail: got %v, want ErrMissingArgument", err)
	}
}

func TestPlanOptions(t *testing.T) {
	for _, c := range []struct{ def, want string }{
		{"inlines=no;my_func_one_abcd arg1", "my_func_one_abcd #0 arg1=%rdi\n"},
		{"my_func_one_abcd%return arg1", "my_func_one_abcd #0 arg1=not-at-site: the function has returned\n"},
		{"my_func_three_abcd a=arg1:u8", "my_func_three_abcd #0 a=%rdx\n"},
		{"slot_reset@page.c", "slot_reset at slot_reset.isra.0 #0\n"},
	} {
		p, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", c.def, plan.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.def, err)
			continue
		}
		if got := describe(p); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got\n%swant it to begin with\n%s", c.def, got, c.want)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	for _, c := range []struct{ def, want string }{
		{"my_func_oen_abcd arg1", `column 1: basic-gcc12-O2-dwarf5.elf: no function matches "my_func_oen_abcd"; nearest: my_func_one_abcd`},
		{"my_func_one_abcd agr1", `column 18: no variable "agr1" in my_func_one_abcd; nearest: arg1`},
		{"my_func_one_abcd other", `column 18: no variable "other" in my_func_one_abcd; there are: arg1`},
		{"my_func_*_abcd pkt->lenn", `column 19: struct pkt has no member "lenn"; nearest: len`}, // others have no pkt at all
		{"my_func_[z-a] arg1", "column "},
		{"my_func_one_abcd@nowhere.c arg1", `column 1: basic-gcc12-O2-dwarf5.elf: "my_func_one_abcd": no matching function is declared in "nowhere.c"`},
		{"my_func_one_abcd+0x1000 arg1", "column 1: offset 0x1000 is outside the code"},
		{"my_func_one_abcd arg1 a=arg1 b=arg1 c=arg1", "column 37: at most 3 arguments fit into registers, and 4 are fetched: a record is needed"},
		{"my_func_one_abcd arg1 c=$comm", "column 23: a task's name does not fit into a register: a record is needed"},
	} {
		_, err := plantest.Fixture(t, "basic-gcc12-O2-dwarf5.elf", c.def, plan.Options{Convention: prologue.ConventionRegisters})
		var pe *probe.Error
		if !errors.As(err, &pe) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want a *probe.Error that begins with %q", c.def, err, c.want)
		}
	}
}
