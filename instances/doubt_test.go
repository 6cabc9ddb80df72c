package instances_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// An inlined body that assigns its parameter at once. clang describes what it assigns, n+7, and nothing in the debug information
// tells that from a caller that passes a+7.
const assignsAtOnce = `
volatile unsigned long sink;
struct name { unsigned long length; char text[16]; } name = { 5, "known" };

static inline __attribute__((always_inline)) void add(unsigned long n, struct name *p)
{
	n += 7;
	sink = n + 9;
	sink = p->length;
}

__attribute__((noinline)) void caller(unsigned long a, struct name *p)
{
	sink = 1;
	add(a, p);
	sink = a;
}

int main(void)
{
	caller(35, &name);
	return 0;
}
`

// keeper stores each hit's event, in the structure that the header declares.
const keeper = `
typedef unsigned char __u8; typedef unsigned short __u16; typedef unsigned __u32; typedef unsigned long long __u64;
typedef signed char __s8; typedef short __s16; typedef int __s32; typedef long long __s64;
%s
static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*const get_attach_cookie)(void *ctx) = (void *)174;
struct { int (*type)[2]; __u32 *key; struct func_event *value; int (*max_entries)[1]; } events __attribute__((section(".maps"), used));
char gpl[] __attribute__((section("license"), used)) = "GPL";

__attribute__((section("%s"), used)) int func(void *ctx, int err, %s)
{
	__u32 first = 0;
	struct func_event *e = map_lookup_elem(&events, &first);

	if (e) {
		e->site = get_attach_cookie(ctx);
		e->err = (__u32)err;
		%s
	}
	return 0;
}
`

// TestDoubt: a program of a user gets an argument that may not be what was passed as one that is missing, or, if its definition says
// so, with its value and a second bit. The value is in fact another one than was passed: 35.
func TestDoubt(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	clang := testenv.Tool(t, "clang-14")
	dir := t.TempDir()
	build := func(out, text string, options ...string) string {
		source, path := filepath.Join(dir, out+".c"), filepath.Join(dir, out)
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := exec.Command(clang, append(options, "-O2", "-g", "-o", path, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return path
	}
	target := build("target", assignsAtOnce)
	img, err := dwarfloc.Open(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	for i, tt := range []struct {
		def, want string
	}{
		{"func=add n p->length", "err 0x1 doubt 0x0 [? 5]"},
		{"doubt=missing; func=add n p->length", "err 0x1 doubt 0x0 [? 5]"},
		{"doubt=keep; func=add n p->length", "err 0x10001 doubt 0x1 [~42 5]"},
		{"doubt=keep; func=add p->length n m=n+1", "err 0x60006 doubt 0x6 [5 ~42 ~43]"},
		{"func=add n p->length p->text:string", "err 0x1 doubt 0x0 [? 5 \"known\"]"},
		{"doubt=keep; func=add p->length n p->text:string", "err 0x2 doubt 0x2 [5 ~42 \"known\"]"},
		{"doubt=keep; func=add n name=p->text:string $comm (p->length)", "err 0x1 doubt 0x1 [~42 \"known\" \"target\" 5]"},
		// It cannot be fetched at all: it is missing, and not doubtful.
		{"doubt=keep; func=add n x=+0(n)", "err 0x10003 doubt 0x1 [~42 ?]"},
		{"doubt=keep; func=add x=+0(n):string n", "err 0x3 doubt 0x2 [? ~42]"},
		{"doubt=keep; if=n == 42; func=add n", "err 0x10001 doubt 0x1 [~42]"},
	} {
		p := plantest.New(t, img, tt.def, plan.Options{})
		params, fill := "struct func_args *args", "e->args = *args;"
		if p.RecordBytes == 0 && p.Instances[0].Prologue.Layout.Size == 0 {
			params, fill = "", ""
			for k, a := range p.Sites[0].Args {
				params += fmt.Sprintf("%s__u64 %s", map[bool]string{true: ", "}[k > 0], a.Name)
				fill += fmt.Sprintf("e->%s = %s; ", a.Name, a.Name)
			}
		}
		object := build(fmt.Sprintf("keeper%d", i), fmt.Sprintf(keeper, p.Header(), tt.def, params, fill), "-target", "bpf", "-c", "-Wall", "-Werror", "-Wno-unused")
		for _, dispatch := range []bool{false, true} {
			got, err := lastEvent(img, object, target, dispatch)
			if err != nil {
				t.Fatalf("%s: %v", tt.def, err)
			}
			if got != tt.want {
				t.Errorf("%s, dispatch %v: %s, want %s", tt.def, dispatch, got, tt.want)
			}
		}
	}
}

// lastEvent runs a program under the probes of an object, and returns the last event that the object stored.
func lastEvent(img *dwarfloc.Image, object, program string, dispatch bool) (string, error) {
	ctx := context.Background()
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		return "", err
	}
	expanded, err := instances.Expand(ctx, spec, func(*probe.Definition) (instances.Subject, error) {
		running, err := instances.Find(img, instances.FindOptions{})
		return instances.Subject{Image: img, Running: running, Dispatch: dispatch}, err
	})
	if err != nil {
		return "", err
	}
	c, err := instances.NewCollection(expanded, ebpf.CollectionOptions{})
	if err != nil {
		return "", err
	}
	defer c.Close()
	attached, err := c.Attach(ctx, instances.AttachOptions{})
	if err != nil {
		return "", err
	}
	defer attached["func"].Close()
	if err := exec.Command(program).Run(); err != nil {
		return "", err
	}
	data, err := c.Maps["events"].LookupBytes(uint32(0))
	if err != nil {
		return "", err
	}
	e, err := c.Definitions["func"].Plan.Event(data)
	return fmt.Sprintf("err %#x doubt %#x %v", e.Err, e.Doubt, e.Values), err
}
