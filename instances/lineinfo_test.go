package instances_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// programsOf makes the programs of an object whose program func has a definition for the
// fixture that runs.
func programsOf(t *testing.T, object []byte) []*ebpf.ProgramSpec {
	t.Helper()
	coll, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	user := coll.Programs["func"]
	p, err := plantest.Fixture(t, program, user.SectionName, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	specs, err := instances.ProgramSpecs(p, user)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range coll.Maps {
		loaded, err := ebpf.NewMap(m)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = loaded.Close() })
		for _, s := range specs {
			if err := s.Instructions.AssociateMap(name, loaded); err != nil && !errors.Is(err, asm.ErrUnreferencedSymbol) {
				t.Fatal(err)
			}
		}
	}
	return specs
}

// TestBpftool: what bpftool shows of a program in the kernel, with functions and source
// lines: those of the prologue explain themselves, those of the user's program are as
// clang wrote them.
func TestBpftool(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	bpftool := testenv.Tool(t, "bpftool")
	hits, record := hitsObjectBytes(t), recordObject
	for _, tt := range []struct {
		what     string
		object   []byte
		instance int
		want     []string // in this order
	}{
		{"registers", hits, 1, []string{
			"int func_1(void * ctx, int err, long value):",
			"; key: %rdi+1 · mix inlined in first [file:prologue line_num:1 line_col:0]",
			"; int func(void *ctx, int err, long value) [file:./hits.c line_num:31 line_col:0]",
			"; __u32 site = get_attach_cookie(ctx); [file:./hits.c line_num:33 line_col:15]",
			"; __sync_fetch_and_add(&c->hits, 1); [file:./hits.c line_num:38 line_col:2]",
		}},
		{"record", record, 0, []string{
			"int func_fetch_0(void * ctx):",
			"; text: [%r9] · words [file:prologue line_num:1 line_col:0]",
			"; call func with ctx, err and the record [file:prologue line_num:",
			"int func_0(void * ctx, int err, struct func_args * args):",
			"; int func(void *ctx, int err, struct func_args *args) [file:./record.c line_num:",
			"; if (err & 1) [file:./record.c line_num:",
			"int print(",
			"; trace_printk(fmt, sizeof(fmt), text, l, err); [file:./record.c line_num:",
		}},
	} {
		prog, err := ebpf.NewProgram(programsOf(t, tt.object)[tt.instance])
		if err != nil {
			t.Fatalf("%s: %+v", tt.what, err)
		}
		t.Cleanup(func() { _ = bpfexec.Close(prog) })
		info, err := prog.Info()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := info.ID()
		text, err := exec.Command(bpftool, "prog", "dump", "xlated", "id", strconv.Itoa(int(id)), "linum").CombinedOutput()
		if err != nil {
			t.Fatalf("bpftool: %v\n%s", err, text)
		}
		rest := string(text)
		for _, w := range tt.want {
			_, after, ok := strings.Cut(rest, w)
			if !ok {
				t.Errorf("%s: no %q, or not there, in\n%s", tt.what, w, text)
				break
			}
			rest = after
		}
	}
}

// TestVerifierMessages: the verifier's errors are reported with the user's line, or
// with the prologue's.
func TestVerifierMessages(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, tt := range []struct {
		object []byte
		at     string // the first instruction with this source becomes one that is refused
		want   string
	}{
		{hitsObjectBytes(t), "__u32 site = get_attach_cookie(ctx);", "; __u32 site = get_attach_cookie(ctx);"},
		{hitsObjectBytes(t), "key: %rdi+1 · mix inlined in first", "; key: %rdi+1 · mix inlined in first"},
		{recordObject, "if (err & 1)", "; if (err & 1)"},
		{recordObject, "l: %rdi · words", "; l: %rdi · words"},
	} {
		specs := programsOf(t, tt.object)
		s := specs[min(1, len(specs)-1)]
		found := false
		for i := range s.Instructions {
			ins := &s.Instructions[i]
			if src := ins.Source(); src != nil && strings.TrimSpace(src.String()) == tt.at {
				bad := asm.LoadMem(asm.R0, asm.R9, 0, asm.DWord) // no address is in R9
				ins.OpCode, ins.Dst, ins.Src, ins.Offset, ins.Constant = bad.OpCode, bad.Dst, bad.Src, bad.Offset, bad.Constant
				found = true
				break
			}
		}
		if !found {
			t.Fatalf("no instruction with the source %q", tt.at)
		}
		prog, err := ebpf.NewProgram(s)
		if err == nil {
			_ = bpfexec.Close(prog)
			t.Errorf("%s: accepted", tt.at)
			continue
		}
		var v *ebpf.VerifierError
		if text := fmt.Sprintf("%+v", err); !errors.As(err, &v) || !strings.Contains(text, tt.want) || !strings.Contains(text, "R9 ") {
			t.Errorf("%s: no %q in\n%s", tt.at, tt.want, text)
		}
	}
}
