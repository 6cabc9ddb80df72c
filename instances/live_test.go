package instances_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	"github.com/bpfprologue/bpfprologue/sites"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// liveTests are definitions over the running fixture (testdata/vmlinux-fixtures/src/run.c)
// with what each hit fetches, in the order of the plan's sites: the values that the
// program passes, worked out by hand from its source. "?" stands for an argument that is not fetched.
var liveTests = []struct {
	def  string
	want string // hits are separated by " | "
}{
	// Numbers of every size and sign.
	{"scalars c uc s", "c=-40 uc=240 s=-4000"},
	{"scalars us i u", "us=40000 i=-4000000 u=4026531880"},
	{"scalars c uc s us i u", "c=-40 uc=240 s=-4000 us=40000 i=-4000000 u=4026531880"},
	{"scalars $params", "c=-40 uc=240 s=-4000 us=40000 i=-4000000 u=4026531880"},
	{"words l ul t", "l=-40000000280 ul=18364758544493064760 t=true"},
	{"words e lv", "e=GREEN lv=LOW"},
	{"words text:string", `text="hello"`},
	{"words l t text:string e lv ul", `l=-40000000280 t=true text="hello" e=GREEN lv=LOW ul=18364758544493064760`},
	{"words text[1] text[4]", "text='e' text_2='o'"},
	{"many a b c", "a=40 b=-40 c=41"},
	{"many d e f", "d=-41 e=42 f='x'"},
	{"many g h j", "g=43 h=-43 j=255"},
	{"many i.a i.b j", "a=41 b=-40 j=255"},
	{"many i", "i={a=41, b=-40}"},
	{"many a b c d e f g h i j", "a=40 b=-40 c=41 d=-41 e=42 f='x' g=43 h=-43 i={a=41, b=-40} j=255"},
	{"many $params", "a=40 b=-40 c=41 d=-41 e=42 f='x' g=43 h=-43 i={a=41, b=-40} j=255"},

	// Types of the definition.
	{"scalars i:u32 i2=i:x32 i3=i:s16", "i=4290967296 i2=0xffc2f700 i3=-2304"},
	{"scalars i:u16 i2=i:u8 i3=i:x", "i=63232 i2=0 i3=0xffc2f700"},
	{"scalars uc:s8 uc2=uc:x8 us:s16", "uc=-16 uc2=0xf0 us=-25536"},
	{"scalars c:u8 c2=c:x8 c3=c:u", "c=216 c2=0xd8 c3=216"},
	{"words t:u8 e:u32 lv:s32", "t=1 e=2 lv=-2"},
	{"many f:char j:bool c:char", "f='x' j=true c=')'"},
	{"walk n->in.s:u16 x=n->in.s:x16 y=n->in.s:s8", "s=65236 x=0xfed4 y=-44"},
	{"walk n->lo:b4@2/32 x=n->lo:b8@24/32 y=n->lo:b1@0/32", "lo=4 x=17 y=1"},
	{"walk n->in.arr:s32[4]", "arr=[-20, -9, 2, 13]"},
	{"walk n->in.arr:x32[2]", "arr=[0xffffffec, 0xfffffff7]"},
	{"walk n->bytes:x8[5] n->bytes:u8[2]", "bytes=[0xa0, 0xa1, 0xa2, 0xa3, 0xa4] bytes_2=[160, 161]"},
	{"walk n->tag:char[4]", "tag=['t', 'a', 'g', 'g']"},
	{"walk n->in:u32[2]", "in=[16449236, 4294967276]"},
	{"walk n->matrix:u32[6]", "matrix=[1000, 1001, 1002, 1003, 1004, 1005]"},

	// Members through pointers.
	{"walk n->in.port n->in.uc i", "port=443 uc=250 i=2"},
	{"walk n->in.s n->inp->s n->inp->port", "s=-300 s_2=-11 port=8001"},
	{"walk n->l n->lo n->hi", "l=-8303603439 lo=286331153 hi=-2"},
	{"walk n->color n->level n->ok", "color=BLUE level=LOW ok=true"},
	{"walk n->sc8 n->next->l", "sc8=-7 l=77"},
	{"walk n->flags n->mode n->wide", "flags=5 mode=17 wide=11259375"},
	{"walk n->sb n->sc", "sb=-3 sc=-1000"},
	{"walk n->big n->rest", "big=78187493530 rest=12377840"},
	{"walk n->flags n->mode n->wide n->sb n->sc n->big n->rest", "flags=5 mode=17 wide=11259375 sb=-3 sc=-1000 big=78187493530 rest=12377840"},
	{"walk n->cvp[0] n->cvp[1] n->cvp[-2]", "cvp=300 cvp_2=400 cvp_3=100"},
	{"walk list[1]->l list[0]->in.port:x16", "l=77 port=0x1bb"},
	{"walk list[1]->name:string list[0]->name:string", `name="leaf" name_2="root-node"`},

	// Elements.
	{"walk n->in.arr[0] n->in.arr[3] n->in.arr[i]", "arr=-20 arr_2=13 arr_3=2"},
	{"walk n->matrix[1][2] n->matrix[0][1]", "matrix=1005 matrix_2=1001"},
	{"walk n->matrix[1]", "matrix=[1003, 1004, 1005]"},
	{"walk n->matrix", "matrix=[[1000, 1001, 1002], [1003, 1004, 1005]]"},
	{"walk n->bytes[4] n->tag[2] n->bytes[i]", "bytes=164 tag='g' bytes_2=162"},
	{"walk n->names[0]:string n->names[1]:string", `names="zero" names_2="one"`},
	{"walk n->names[i]:string", `names="a string that is longer than the others, so that it is cut"`},
	{"walk n->names[i][2] n->name[3]", "names='s' name='t'"},

	// Strings and objects.
	{"walk n->name:string n->tag:string", `name="root-node" tag="tagged!"`},
	{"walk n->name:ustring", `name="root-node"`},
	{"walk n->name:string@user i", `name="root-node" i=2`},
	{"walk n->tag", `tag="tagged!"`},
	{"walk n->next->tag", `tag="12345678"`},
	{"walk n->next->tag:string n->next->name:string", `tag="12345678" name="leaf"`},
	{"walk n->in", "in={s=-300, uc=250, arr=[-20, -9, 2, 13], port=443}"},
	{"walk n->in n->inp->port n->name:string i n->ok", `in={s=-300, uc=250, arr=[-20, -9, 2, 13], port=443} port=8001 name="root-node" i=2 ok=true`},
	{"walk n->bytes", "bytes=[160, 161, 162, 163, 164]"},
	{"take_small s", "s={a=-40, b=513, c=9}"},
	{"take_small s.a s.b s.c", "a=-40 b=513 c=9"},
	{"take_small big.v[3] big.v[0]", "v=43 v_2=40"},
	{"take_small big.text", `text="large by value"`},
	{"take_small big.text:string s.b", `text="large by value" b=513`},
	{"take_small big.v", "v=[40, 41, 42, 43, 44, 45]"},
	{"take_small big", `big={v=[40, 41, 42, 43, 44, 45], text="large by value"}`},
	{"take_pair p x", "p={a=41, b=-40} x=40"},
	{"take_pair p.a p.b x", "a=41 b=-40 x=40"},
	{"second v p.a", "v=40 a=41"},

	// A chain that faults: the argument after NULL is not fetched, the others are.
	{"walk n->next->inp->s i", "s=? i=2"},
	{"walk i n->next->inp->port n->ok n->next->inp->arr[1]", "i=2 port=? ok=true arr=?"},
	{"walk n->next->inp n->next->next->name:string n->next->name:string", `inp=0x0 name=? name_2="leaf"`},
	{"walk n->next->next->in i", "in=? i=2"},
	{"take_pair p.a:string x", "error"},

	// Given places.
	{"nothing %di x=%rdi:x8 v", "di=40 x=0x28 v=40"},
	{"negative %di:s32 v", "di=40 v=40"},
	{`nothing \7 k=\-1 h=\0x10:x8`, "value=7 k=18446744073709551615 h=0x10"},
	{`nothing k=\-1:s64 v`, "k=-1 v=40"},
	{"nothing @total:u32 @counter:s64 t=@total:x16", "total=4276993775 counter=-5 t=0xbeef"},
	{"nothing @root+16:char", "root='t'"},
	{"nothing counter total root.in.port", "counter=-5 total=4276993775 port=443"},
	{"nothing leaf.l root.tag inners[1].port", `l=77 tag="tagged!" port=8001`},
	{"nothing root.next->l root.inp->s root.matrix[1][1]", "l=77 s=-11 matrix=1004"},
	{"nothing $comm v", `comm="run-gcc12-O2-dw" v=40`},
	{"nothing v $comm root.name:string", `v=40 comm="run-gcc12-O2-dw" name="root-node"`},
	{"many $stack1 $stack2:s32 $stack4", "stack1=43 stack2=-43 stack4=18446744073709551576"},

	// Results.
	{"negative%return $retval", "retval=-40"},
	{"narrow%return $retval", "retval=40"},
	{"label%return $retval:string", `retval="yes"`},
	{"label%return $retval[0] x=$retval[2]", "retval='y' x='s'"},
	{"follow%return $retval->l $retval->name:string", `l=77 name="leaf"`},
	{"twice%return $retval v", "retval=80 v=40"},
	{"walk%return $retval:s64", "retval=-8303603437"},
	{"negative%return r=$retval:u8 root.in.port", "r=216 port=443"},
	{"nothing%return root.color", "color=BLUE"},

	// Inlined instances.
	{"mix key k", "key=41 k=7 | key=80 k=49"},
	{"mix p->s key p->port", "s=-11 key=41 port=8001 | s=-12 key=80 port=8002"},
	{"mix p->arr[0] k:u8", "arr=0 k=7 | arr=0 k=49"},
	{"mix $params", "key=41 p=* k=7 | key=80 p=* k=49"},
	{"mix key p->s k p->port $comm", `key=41 s=-11 k=7 port=8001 comm="run-gcc12-O2-dw" | key=80 s=-12 k=49 port=8002 comm="run-gcc12-O2-dw"`},
	{"add lhs.a lhs.b rhs.b", "a=41 b=? b_2=3"},
	{"add lhs rhs", "lhs=? rhs={a=40, b=3}"},
	{"lines n", "n=40"},
	{"label v", "v=40"},
	{"follow n->name:string n->l", `name="root-node" l=-8303603439`},
	{"first v", "v=40"},

	// Lines, by number and by text.
	{"lines:0 n", "n=40"},
	{"lines:1 n", "n=40"},
	{"lines:5 n", "n=40"},
	{"lines:6 n sum", "n=40 sum=42"},
	{"lines:7 sum", "sum=42"},
	{"lines:8 sum n", "sum=42 n=40"},
	{"lines:10 odd sum", "odd=126 sum=42"},
	{"lines:11 odd sum n", "odd=126 sum=42 n=40"},
	{"lines:13 sum n", "sum=168 n=40"},
	{"lines:14 sum $comm", `sum=168 comm="run-gcc12-O2-dw"`},
	{"run.c:199 sum n", "sum=168 n=40"},
	{"run.c:191 n", "n=40"},
	{"lines@run.c:13 sum", "sum=168"},
	{"mix:2 key k", "key=41 k=7 | key=80 k=49"},
	{"mix:5 sum", "sum=48 | sum=129"},
	{"run.c:155 sum p->s", "sum=48 s=-11 | sum=129 s=-12"},
	{"lines;odd=* sum", "error"},
	{"lines;sum\\+=odd; odd sum", "odd=126 sum=42"},
	{"lines;KEEP(sum); sum", "sum=42 | sum=168"},
	{"run.c;return\\ 2\\*v; v", "v=40"},
	{"lines $vars", "n=40 odd=? sum=0"},
	{"lines:13 $vars", "n=40 odd=? sum=168"},
	{"second:6 v", "v=40"},
	{"lines+0 n", "n=40"},
	{"scalars:30 c i", "error"},
	{"lines:99 n", "error"},
	{"nosuch.c:3 n", "error"},

	// A symbol that the debug information does not know.
	{"doubled v", "v=40"},

	// Patterns: several functions.
	{"ne*ative v", "v=40"},
	{"na*ow v", "v=808"},
	{"[fs][ei]*t v", "v=40"},

	// What types do not allow.
	{"walk n.in", "error"},
	{"walk i->x", "error"},
	{"walk n->nosuch", "error"},
	{"walk n->in.arr[4]", "error"},
	{"walk n->in.arr[-1]", "error"},
	{"walk n->color.x", "error"},
	{"walk n->o->x", "error"},
	{"walk n->any[0]", "error"},
	{"walk n->flags[0]", "error"},
	{"walk n->in[0]", "error"},
	{"walk n->in.arr[n]", "error"},
	{"walk n->in.arr[nosuch]", "error"},
	{"walk i:string", "error"},
	{"walk n->in:string", "error"},
	{"walk %nosuch", "error"},
	{"walk @nosuch", "error"},
	{"walk $retval", "error"},
	{"nothing%return $retval", "error"},
	{"nosuch v", "error"},
	{"walk nosuch", "error"},
}

// liveSources are where the fixture's source is.
var liveSources = sites.Sources{{Dir: "../testdata/vmlinux-fixtures/src"}}

// capture is a program that keeps what it is given, in maps by attach cookie: err, and
// its three arguments or the record.
type capture struct {
	errs, data *ebpf.Map
	size       int
}

func newCapture(t *testing.T, p *plan.Plan) *capture {
	t.Helper()
	c := &capture{size: 8 * prologue.MaxArgs}
	if p.Convention == prologue.ConventionRecord {
		c.size = 0
		for i := range p.Instances {
			c.size = max(c.size, p.Instances[i].Prologue.Layout.Size)
		}
	}
	newHash := func(size int) *ebpf.Map {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: uint32(size), MaxEntries: uint32(len(p.Sites))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	c.errs, c.data = newHash(8), newHash(max(c.size, 8))
	return c
}

func (c *capture) spec(p *plan.Plan) *ebpf.ProgramSpec {
	update := func(m *ebpf.Map, from asm.Register, off int32) asm.Instructions {
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, -4),
			asm.Mov.Reg(asm.R3, from), asm.Add.Imm(asm.R3, off),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(),
		}
	}
	record := p.Convention == prologue.ConventionRecord
	var insns asm.Instructions
	for i, r := range []asm.Register{asm.R6, asm.R7, asm.R8} {
		from := asm.R3 + asm.Register(i)
		if record && i == 0 || !record && i < len(p.Sites[0].Args) {
			insns = append(insns, asm.Mov.Reg(r, from))
		} else {
			insns = append(insns, asm.Mov.Imm(r, 0)) // the verifier knows of no argument there
		}
	}
	insns = append(insns,
		asm.StoreMem(asm.R10, -16, asm.R2, asm.DWord),
		asm.FnGetAttachCookie.Call(),
		asm.StoreMem(asm.R10, -4, asm.R0, asm.Word),
	)
	insns = append(insns, update(c.errs, asm.R10, -16)...)
	if record {
		insns = append(insns, update(c.data, asm.R6, 0)...)
	} else {
		for i, r := range []asm.Register{asm.R6, asm.R7, asm.R8} {
			insns = append(insns, asm.StoreMem(asm.R10, int16(-40+8*i), r, asm.DWord))
		}
		insns = append(insns, update(c.data, asm.R10, -40)...)
	}
	return &ebpf.ProgramSpec{
		Name: "capture", Type: ebpf.Kprobe, License: "GPL",
		Instructions: append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return()),
	}
}

// live is a row that is attached.
type live struct {
	row     int
	plan    *plan.Plan
	capture *capture
}

// TestLive probes a running program: each value that a definition fetches is the one
// that the program passed.
func TestLive(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, name := range fixtures.Programs() {
		t.Run(name, func(t *testing.T) { runLive(t, name, attachLive) })
		t.Run(name+"/dispatched", func(t *testing.T) { runLive(t, name, dispatchLive) })
	}
}

func runLive(t *testing.T, name string, attach func(*testing.T, *live, *instances.Running, int)) {
	path, img := testenv.Program(t, name)
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it is ready
		t.Fatal(err)
	}
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := plan.Options{Sources: liveSources}
	if strings.Contains(name, "gcc") {
		at := running.Target()
		// And single probes, without instructions that extend signs, with the other.
		o.Target.KprobeMulti, o.Target.UprobeMulti, o.Target.SignExtends = at.KprobeMulti, at.UprobeMulti, at.SignExtends
	}
	var all []live
	for i, row := range liveTests {
		l := live{row: i}
		def, err := probe.Parse(row.def)
		if err == nil {
			l.plan, err = plan.New(context.Background(), img, def, o)
		}
		if row.want == "error" {
			if err == nil {
				t.Errorf("%s: no error", row.def)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.def, err)
			continue
		}
		l.capture = newCapture(t, l.plan)
		attach(t, &l, running, cmd.Process.Pid)
		all = append(all, l)
	}
	if _, err := in.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	values, unfetched := 0, 0
	for _, l := range all {
		row := &liveTests[l.row]
		got, n, lost := l.hits(t)
		values, unfetched = values+n, unfetched+lost
		// The table is for GCC; what clang does not describe at a site is not fetched.
		exact := strings.Contains(name, "gcc")
		want := strings.ReplaceAll(row.want, "run-gcc12-O2-dw", name[:15]) // the task's name
		if !sameHits(got, want, exact) {
			t.Errorf("%s:\n got %s\nwant %s", row.def, got, want)
		}
	}
	t.Logf("%d definitions, %d values fetched, %d not", len(all), values, unfetched)
}

func attachLive(t *testing.T, l *live, r *instances.Running, pid int) {
	t.Helper()
	def := l.plan.Definition
	specs, err := instances.ProgramSpecs(l.plan, l.capture.spec(l.plan))
	if err != nil {
		t.Fatalf("%v: %v", def, err)
	}
	var programs []*ebpf.Program
	for _, s := range specs {
		p, err := ebpf.NewProgram(s)
		if err != nil {
			t.Fatalf("%v: %+v", def, err)
		}
		t.Cleanup(func() { _ = bpfexec.Close(p) })
		programs = append(programs, p)
	}
	_, err = instances.Attach(context.Background(), l.plan, programs, r, instances.AttachOptions{PID: -1})
	if err == nil || !strings.Contains(err.Error(), "-1: no process has that number") {
		t.Errorf("process -1: %v", err)
	}
	a, err := instances.Attach(context.Background(), l.plan, programs, r, instances.AttachOptions{PID: pid, All: true})
	if err != nil {
		t.Fatalf("%v: %v", def, err)
	}
	t.Cleanup(func() { _ = a.Close() })
}

func dispatchLive(t *testing.T, l *live, r *instances.Running, pid int) {
	t.Helper()
	def := l.plan.Definition
	user := l.capture.spec(l.plan)
	d, err := instances.NewDispatch(l.plan, func(int) *ebpf.ProgramSpec { return user })
	if stack := (*prologue.StackError)(nil); errors.As(err, &stack) {
		t.Logf("%v: %v", def, err)
		attachLive(t, l, r, pid)
		return
	}
	if err != nil {
		t.Fatalf("%v: %v", def, err)
	}
	loaded, err := d.Load()
	if err != nil {
		t.Fatalf("%v: %+v", def, err)
	}
	t.Cleanup(func() { _ = loaded.Close() })
	a, err := loaded.Attach(context.Background(), r, instances.AttachOptions{PID: pid, All: true})
	if err != nil {
		t.Fatalf("%v: %v", def, err)
	}
	t.Cleanup(func() { _ = a.Close() })
}

// hits prints the values fetched at the plan's sites.
func (l *live) hits(t *testing.T) (text string, values, lost int) {
	t.Helper()
	var parts []string
	for i := range l.plan.Sites {
		var errs uint64
		data := make([]byte, max(l.capture.size, 8))
		if err := l.capture.errs.Lookup(uint32(i), &errs); err != nil {
			parts = append(parts, "no hit at "+l.plan.Sites[i].String())
			continue
		}
		if err := l.capture.data.Lookup(uint32(i), &data); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, v := range l.plan.Values(i, errs, data) {
			words = append(words, v.Name+"="+v.String())
			if v.Lost {
				lost++
			} else {
				values++
			}
		}
		parts = append(parts, strings.Join(words, " "))
	}
	return strings.Join(parts, " | "), values, lost
}

// sameHits compares values; "*" is any. Without exact, "?" is taken for any value, and
// other sites are not missed.
func sameHits(got, want string, exact bool) bool {
	g, w := strings.Split(got, " | "), strings.Split(want, " | ")
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		a, b := splitValues(g[i]), splitValues(w[i])
		if len(a) != len(b) {
			return false
		}
		for j := range a {
			gn, gv, _ := strings.Cut(a[j], "=")
			wn, wv, _ := strings.Cut(b[j], "=")
			if gn != wn || gv != wv && wv != "*" && (exact || gv != "?") {
				return false
			}
		}
	}
	return true
}

// splitValues splits "a=1 b={x=1, y=2} c=\"d e\"" at the spaces between values.
func splitValues(s string) []string {
	var out []string
	depth, quoted, from := 0, false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ' ' && depth == 0:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}
