package dwarfloc_test

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfwrite"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/inside/hooks"
	"github.com/bpfprologue/bpfprologue/internal/raced"
	"github.com/bpfprologue/bpfprologue/internal/runs"
	"github.com/bpfprologue/bpfprologue/pack"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TestAfterwards calls every method of everything that an image hands out, after Close and after the file was cut short, with
// and without having asked before: none may touch what is not mapped any more.
func TestAfterwards(t *testing.T) {
	raced.OneGoroutine(t)
	for _, x := range opened(t) {
		whole, err := os.ReadFile(x.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{"close", "truncate", "halve"} {
			for _, warm := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s/warm=%v", filepath.Base(x.path), how, warm)
				t.Run(name, func(t *testing.T) { afterwards(t, x.open, whole, how, warm) })
			}
		}
	}
}

// kind is a kind of image: with debug information, or with a pack or BTF in its place.
type kind struct {
	path string
	open func(path string) (*dwarfloc.Image, error)
}

// opened returns an image of each kind.
func opened(t *testing.T) []kind {
	t.Helper()
	dir := t.TempDir()
	optimized, err := fixtures.WriteTo(dir, "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(dir, "small.pack")
	packed(t, optimized, small)
	withBTF := filepath.Join(dir, "btf.elf")
	b := newBTF(1, 0)
	integer := b.add("int", 1, 0, 4, 1<<24|32)
	record := b.add("window", 4, 2, 8, b.name("a"), integer, 0, b.name("b"), integer, 32)
	enum := b.add("pkt_prio", 6, 1, 4, b.name("HIGH"), 1)
	proto := b.add("", 13, 2, integer, b.name("w"), b.add("", 2, 0, record), b.name("prio"), enum)
	b.add("caller", 12, 0, proto)
	code := elfwrite.File{Arch: arch.ByName("amd64"), Type: elf.ET_EXEC, Sections: []elfwrite.Section{
		{Name: ".text", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Addr: 0x1000, Data: make([]byte, 0x4000)},
		{Name: ".BTF", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC, Addr: 0x8000, Data: b.section(nil)},
	}, Symbols: []elfwrite.Symbol{{Name: "caller", Addr: 0x1000, Size: 0x100, Type: elf.STT_FUNC, In: ".text"}}}
	if err := os.WriteFile(withBTF, code.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(path string) (*dwarfloc.Image, error) { return dwarfloc.Open(path, nil) }
	kept := func(path string) (*dwarfloc.Image, error) {
		return dwarfloc.Open(path, &dwarfloc.Options{CacheDir: filepath.Join(dir, "kept")})
	}
	img, err := kept(optimized)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := img.Sites(context.Background(), nil); err != nil { // which keeps an index
		t.Fatal(err)
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	return []kind{
		{optimized, open},
		{optimized, kept},
		{small, open},
		{withBTF, func(path string) (*dwarfloc.Image, error) { return dwarfloc.OpenBTF(path, arch.ByName("amd64")) }},
	}
}

// TestTogether asks 16 goroutines' questions of one image of each kind, which is closed meanwhile, and whose callers give up
// meanwhile: each gets an answer or an error that says so. The race detector watches.
func TestTogether(t *testing.T) {
	for _, x := range opened(t) {
		t.Run(filepath.Base(x.path), func(t *testing.T) {
			usual := make(map[string]bool)
			for round := range 12 {
				together(t, x, round, usual)
			}
		})
	}
}

// together is a round. usual has the methods that answer arguments of this kind with an error.
func together(t *testing.T, x kind, round int, usual map[string]bool) {
	img, err := x.open(x.path)
	if err != nil {
		t.Fatal(err)
	}
	values, site := gather(t, img)
	all := methods(values)
	if round == 0 {
		for i := range all {
			usual[all[i].name] = all[i].call(context.Background(), site) != nil
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			for range 40 {
				m := &all[random.IntN(len(all))]
				err := m.call(ctx, site)
				expected := err == nil || errors.Is(err, os.ErrClosed) || errors.Is(err, context.Canceled)
				if !expected && (!usual[m.name] || strings.Contains(err.Error(), "panics")) {
					t.Errorf("%s: %v", m.name, err)
				}
			}
		})
	}
	time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
	if round%3 != 0 {
		cancel()
	}
	if round%3 != 1 {
		if err := img.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	_ = img.Close()
}

// packed writes a pack of an image.
func packed(t *testing.T, path, to string) {
	t.Helper()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	var b bytes.Buffer
	if _, err := pack.Write(context.Background(), img, pack.Options{}, &b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// afterwards calls each method on an image of its own, since what one has read, or failed to read, the next may know.
func afterwards(t *testing.T, open func(string) (*dwarfloc.Image, error), whole []byte, how string, warm bool) {
	path := filepath.Join(t.TempDir(), "image")
	for n := 0; ; n++ {
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		img, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		values, site := gather(t, img)
		all := methods(values)
		if n >= len(all) {
			_ = img.Close()
			if n < 60 {
				t.Errorf("%d methods", n)
			}
			return
		}
		if warm {
			for i := range all {
				_ = all[i].call(context.Background(), site)
			}
		}
		switch how {
		case "close":
			err = img.Close()
		case "truncate":
			err = os.Truncate(path, 0)
		default:
			err = os.Truncate(path, int64(len(whole)/2)&^4095)
		}
		if err != nil {
			t.Fatal(err)
		}
		want := image.ErrChanged
		if how == "close" {
			want = os.ErrClosed
		}
		err = all[n].call(context.Background(), site)
		if err != nil && !errors.Is(err, want) && !all[n].expected(err) {
			t.Errorf("%s: %v", all[n].name, err)
		}
		if how != "close" {
			_ = img.Close()
		}
	}
}

// gather returns what an image hands out, and one of its sites.
func gather(t *testing.T, img *dwarfloc.Image) (out []any, first *dwarfloc.Site) {
	t.Helper()
	out = []any{img, inside.File(img)}
	ctx := context.Background()
	list, err := inside.List(img, ctx, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := img.Sites(ctx, nil)
	if err != nil || len(sites) == 0 {
		t.Fatal(len(sites), err)
	}
	out = append(out, list)
	for i := 0; i < len(sites); i += 7 {
		out = append(out, sites[i]) // most are asked nothing before
	}
	inlined, computed := false, false
	for _, s := range sites {
		params, err := s.Params()
		if err != nil {
			t.Fatal(err)
		}
		if len(params) < 2 || (s.Inlined() && inlined || !s.Inlined() && computed) {
			continue
		}
		inlined, computed = inlined || s.Inlined(), computed || !s.Inlined()
		if first == nil {
			first = s
		}
		out = append(out, s, params[0], params[1], params[0].Type, params[1].Type)
		if r, err := inside.Result(s); err == nil {
			out = append(out, r, r.Type)
		}
		if s.Inlined() {
			ways, err := inside.Ways(img, ctx, []*dwarfloc.Site{s})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range [][]*dwarfloc.Site{inside.WaysIn(s, &ways[0], false), inside.WaysOut(s, &ways[0])} {
				if len(at) > 0 {
					out = append(out, at[0])
				}
			}
		}
	}
	if at, err := img.SiteAt(ctx, sites[0].Addr); err == nil {
		out = append(out, at)
	}
	for _, name := range []string{"struct window", "enum pkt_prio", "u64", "struct page", "int"} {
		if typ, err := inside.ImageType(img, name); err == nil && typ != nil {
			out = append(out, typ)
		}
	}
	return out, first
}

// method is a method of some values of a type.
type method struct {
	name string
	of   []reflect.Value
}

// expected reports whether an error is no different from that of an image that is open: about the question alone.
func (m *method) expected(err error) bool {
	noSymbol := m.name == "inside.Data" && strings.Contains(err.Error(), "no symbol") // what is left of a pack can have its few symbols
	return errors.Is(err, dwarfloc.ErrNotDescribed) || errors.Is(err, image.ErrNoDWARF) || strings.HasSuffix(m.name, ".FileOffset") || noSymbol
}

// methods returns the methods of values but Close, and the functions of package inside that begin with such a value, each once for its
// type.
func methods(values []any) (out []method) {
	at := make(map[string]int)
	add := func(name string, of reflect.Value) {
		i, ok := at[name]
		if !ok {
			i, at[name] = len(out), len(out)
			out = append(out, method{name: name})
		}
		out[i].of = append(out[i].of, of)
	}
	inner := reflect.ValueOf(hooks.Dwarfloc).Elem()
	for _, v := range values {
		of := reflect.ValueOf(v)
		for j := range of.NumMethod() {
			if name := fmt.Sprintf("%s.%s", of.Type(), of.Type().Method(j).Name); !strings.HasSuffix(name, ".Close") {
				add(name, of.Method(j))
			}
		}
		for j := range inner.NumField() {
			if f := inner.Field(j); f.Type().In(0) == of.Type() {
				add("inside."+inner.Type().Field(j).Name, bound(f, of))
			}
		}
	}
	return out
}

// bound returns a function without its first parameter, which is v.
func bound(f, v reflect.Value) reflect.Value {
	var in, out []reflect.Type
	for i := 1; i < f.Type().NumIn(); i++ {
		in = append(in, f.Type().In(i))
	}
	for i := range f.Type().NumOut() {
		out = append(out, f.Type().Out(i))
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, false), func(args []reflect.Value) []reflect.Value {
		return f.Call(append([]reflect.Value{v}, args...))
	})
}

// call calls the method of each value, and the iterators that it returns. It returns the first error.
func (m *method) call(ctx context.Context, site *dwarfloc.Site) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panics: %v\n%s", r, debug.Stack())
		}
	}()
	for _, of := range m.of {
		in := of.Type()
		args := make([]reflect.Value, in.NumIn())
		for i := range args {
			args[i] = argument(ctx, in.In(i), site)
		}
		call := of.Call
		if in.IsVariadic() {
			call = of.CallSlice
		}
		for _, o := range call(args) {
			if o.Kind() == reflect.Func && !o.IsNil() && o.Type().NumIn() == 1 { // an iterator
				o.Call([]reflect.Value{argument(ctx, o.Type().In(0), site)})
			}
			if e, ok := o.Interface().(error); ok && !o.IsZero() {
				err = cmp.Or(err, e)
			}
		}
	}
	return err
}

type everyLine struct{}

func (everyLine) MatchBase(string) bool  { return true }
func (everyLine) Match(string, int) bool { return true }

// argument makes an argument of a type.
func argument(ctx context.Context, t reflect.Type, site *dwarfloc.Site) reflect.Value {
	switch t {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(ctx)
	case reflect.TypeFor[dwarfloc.Matcher]():
		return reflect.ValueOf(dwarfloc.Name("pkt_hold"))
	case reflect.TypeFor[dwarfloc.LineMatcher]():
		return reflect.ValueOf(everyLine{})
	case reflect.TypeFor[*runs.Ways]():
		return reflect.ValueOf(&runs.Ways{In: []runs.Way{{Addr: 0x1000, Probe: 0x1000}}})
	}
	switch t.Kind() {
	case reflect.String:
		return reflect.ValueOf("struct window").Convert(t)
	case reflect.Func:
		return reflect.MakeFunc(t, func([]reflect.Value) (out []reflect.Value) {
			for i := range t.NumOut() {
				if t.Out(i).Kind() == reflect.Bool {
					out = append(out, reflect.ValueOf(true))
					continue
				}
				out = append(out, reflect.Zero(t.Out(i)))
			}
			return out
		})
	case reflect.Uint64:
		return reflect.ValueOf(site.Addr)
	case reflect.Slice:
		if t == reflect.TypeFor[[]*dwarfloc.Site]() {
			return reflect.ValueOf([]*dwarfloc.Site{site})
		}
	}
	return reflect.Zero(t)
}
