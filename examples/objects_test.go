package examples

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// made builds an example by its Makefile, in a copy of the folders, and returns its own.
func made(t *testing.T, name string, tools ...string) string {
	t.Helper()
	for _, tool := range append(tools, "clang-14", "gcc-12", "make") {
		testenv.Tool(t, tool)
	}
	if _, err := os.Stat("/usr/include/bpf/libbpf.h"); err != nil {
		testenv.Missing(t, "libbpf-dev is not installed: run \"make deps\"")
	}
	dir := t.TempDir()
	for _, name := range []string{name, "libbpf"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	tool := filepath.Join(dir, "prolog-dump")
	testenv.Build(t, tool, nil, "../cmd/prolog-dump")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	dir = filepath.Join(dir, name)
	run(t, dir, "make", "CLANG=clang-14", "CC=gcc-12", "BPFTOOL="+testenv.Tool(t, "bpftool"))
	return dir
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// replace changes a text in a file.
func replace(t *testing.T, path, old, with string) {
	t.Helper()
	d, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(d, []byte(old)) {
		t.Fatalf("%s: %v", path, err)
	}
	if err := os.WriteFile(path, bytes.Replace(d, []byte(old), []byte(with), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLibbpf: a loader in C, with libbpf and a skeleton, attaches what the tool wrote, at every place, and loses nothing. Other tools take
// the object too.
func TestLibbpf(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := made(t, "libbpf", "bpftool")
	got := run(t, dir, "./count", "./target")
	if want := "6 probes, 0 refused\n10000 hits, 0 without the argument, sum 5259008\n"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	// What the tool itself sees.
	hits, sum := 0, 0
	for line := range strings.Lines(run(t, dir, "../prolog-dump", "trace", "-q", "-x", "target", "my_func_*_abcd arg1", "--", "./target")) {
		_, value, _ := strings.Cut(line, "arg1=")
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			t.Fatal(err)
		}
		hits, sum = hits+1, sum+n
	}
	if want := fmt.Sprintf("%d hits, 0 without the argument, sum %d\n", hits, sum); !strings.HasSuffix(got, want) {
		t.Errorf("trace has %s", want)
	}
	// With standard input closed, a link's descriptor can be 0.
	if got := run(t, dir, "sh", "-c", "./count ./target <&-"); !strings.HasPrefix(got, "6 probes, 0 refused\n10000 hits,") {
		t.Errorf("without standard input: %s", got)
	}
	variant := func(source string) string {
		if err := os.WriteFile(filepath.Join(dir, "variant.c"), []byte(source+"\n#include \"main.c\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, dir, "gcc-12", "-Wall", "-Wextra", "-Werror", "-o", "variant", "variant.c", "-lbpf")
		out, _ := exec.Command("sh", "-c", "cd "+dir+" && ./variant ./target").CombinedOutput() // it may mean to fail
		return string(out)
	}
	got = variant("#include \"bpfprologue.h\"\n#define bpfprologue_attach(obj, pid, to) bpfprologue_attach(obj, 0, to)")
	if want := "6 probes, 0 refused\n0 hits, 0 without the argument, sum 0\n"; got != want {
		t.Errorf("for the loader's own process, which is not the target's:\n%s, want\n%s", got, want)
	}
	got = variant(`#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define realloc(...) (errno = ENOMEM, NULL)
#define strerror(err) (fprintf(stderr, "%d refused\n", attached.refused), strerror(err))`)
	if want := "6 refused\ncount: Cannot allocate memory\n"; got != want {
		t.Errorf("without memory:\n%s, want\n%s", got, want)
	}
	t.Run("another build", func(t *testing.T) {
		run(t, dir, "gcc-12", "-O1", "-g", "-o", "target", "target.c")
		got, err := exec.Command("sh", "-c", "cd "+dir+" && ./count ./target").CombinedOutput()
		if err == nil || !strings.Contains(string(got), "Stale") {
			t.Errorf("%v: %s", err, got)
		}
		run(t, dir, "gcc-12", "-O2", "-g", "-o", "target", "target.c")
	})
	for _, words := range [][]string{
		{"llvm-objdump-14", "-d", "count.o"},
		{"llvm-strip-14", "-g", "-o", "stripped.o", "count.o"},
		{"bpftool", "gen", "skeleton", "stripped.o", "name", "count_bpf"},
		{"bpftool", "gen", "object", "linked.o", "count.o"},
	} {
		run(t, dir, testenv.Tool(t, words[0]), words[1:]...)
	}
	t.Run("cilium/ebpf", func(t *testing.T) { attach(t, filepath.Join(dir, "count.o"), filepath.Join(dir, "target")) })
}

// TestBpf2go: a loader in Go, with bpf2go and without this library, does the same. Its module is its own: what it needs is what this one
// needs, so that nothing else is downloaded.
func TestBpf2go(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := made(t, "bpf2go")
	want := "6 probes, 0 refused\n10000 hits, 0 without the argument, sum 5259008\n"
	if got := run(t, dir, "./count", "./target"); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	// A program that has no table is attached by others. Programs come in any order: so several times.
	replace(t, filepath.Join(dir, "../libbpf/count.bpf.c"), "char _license", "SEC(\"socket\")\nint other(void *ctx)\n{\n\treturn 0;\n}\n\nchar _license")
	replace(t, filepath.Join(dir, "main.go"), `"func": objects.Func`, `"func": objects.Func, "other": objects.Other`)
	run(t, dir, "make", "CLANG=clang-14", "CC=gcc-12")
	const times = 10
	for range times {
		if got := run(t, dir, "./count", "./target"); got != want {
			t.Fatalf("with one more program\n%s, want\n%s", got, want)
		}
	}
	run(t, dir, "gcc-12", "-O1", "-g", "-o", "target", "../libbpf/target.c")
	for range times {
		cmd := exec.Command("./count", "./target")
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "and the programs are for") {
			t.Fatalf("another build: %v: %s", err, text)
		}
	}
}

// TestRust: a loader in Rust does the same, by libbpf and the header.
func TestRust(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := made(t, "rust", "rustc", "bpftool")
	got := run(t, dir, "./count", "./target")
	if want := "6 probes, 0 refused\n10000 hits, sum 5259008\n"; got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestMulti: programs of an object that asks for it are attached at all places at once.
func TestMulti(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := made(t, "libbpf", "bpftool")
	run(t, dir, "../prolog-dump", "object", "--multi", "count.bpf.o", "-x", "target", "-o", "multi.o")
	spec, err := ebpf.LoadCollectionSpec(filepath.Join(dir, "multi.o"))
	if err != nil {
		t.Fatal(err)
	}
	if p := spec.Programs["func"]; p.AttachType != ebpf.AttachTraceUprobeMulti {
		t.Fatalf("section %s, attach type %v", p.SectionName, p.AttachType)
	}
	counted(t, spec, filepath.Join(dir, "target"), func(x *link.Executable, p *ebpf.Program, sites []site) {
		o := new(link.UprobeMultiOptions)
		for _, s := range sites {
			o.Addresses, o.Cookies = append(o.Addresses, s.Offset), append(o.Cookies, s.Cookie)
		}
		l, err := x.UprobeMulti(nil, p, o)
		if errors.Is(err, ebpf.ErrNotSupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	})
}

// site is what a table has.
type site struct {
	Offset, Cookie uint64
	Flags, Number  uint32
	Where          [64]byte
}

// attach attaches an object's program at each site of its table.
func attach(t *testing.T, object, target string) {
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	counted(t, spec, target, func(x *link.Executable, p *ebpf.Program, sites []site) {
		for _, s := range sites {
			l, err := x.Uprobe("", p, &link.UprobeOptions{Address: s.Offset, Cookie: s.Cookie})
			if err != nil {
				t.Fatalf("%s: %v", bytes.TrimRight(s.Where[:], "\x00"), err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}
	})
}

// counted loads an object with this loader, has it attached by its tables, and checks what it counts.
func counted(t *testing.T, spec *ebpf.CollectionSpec, target string, attach func(x *link.Executable, p *ebpf.Program, sites []site)) {
	t.Helper()
	var sites [6]site
	if err := spec.Variables["sites_func"].Get(&sites); err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, err := link.OpenExecutable(target)
	if err != nil {
		t.Fatal(err)
	}
	attach(x, c.Programs["func"], sites[:])
	run(t, "", target)
	var hits, sum int64
	if err := errors.Join(c.Variables["hits"].Get(&hits), c.Variables["sum"].Get(&sum)); err != nil {
		t.Fatal(err)
	}
	if hits != 10000 || sum != 5259008 {
		t.Errorf("%d hits, sum %d", hits, sum)
	}
}
