package pack

import (
	"compress/gzip"
	"context"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// copied returns a value that shares no memory with another one, which has exported fields alone.
func copied(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(copied(v.Elem()))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(copied(v.Field(i)))
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() { // nil if it is empty
			out.Set(reflect.Append(out, copied(v.Index(i))))
		}
	default:
		out.Set(v)
	}
	return out
}

// whole writes a pack and compares all of it with what was put into it.
func whole(t *testing.T, img *dwarfloc.Image, match dwarfloc.Matcher) {
	t.Helper()
	type put struct {
		i int
		s packfile.Site
	}
	var mu sync.Mutex
	var all []put
	o := Options{Match: match, seen: func(i int, s *packfile.Site) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, put{i, copied(reflect.ValueOf(s)).Elem().Interface().(packfile.Site)})
	}}
	file, types, sum, err := write(context.Background(), img, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(file, "pack"); err != nil {
		t.Fatal(err)
	}
	section, err := packfile.Find(file, "pack")
	if err != nil {
		t.Fatal(err)
	}
	f, err := packfile.Open(section, "pack")
	if err != nil {
		t.Fatal(err)
	}
	refs, err := f.List(nil)
	if err != nil || len(refs) != len(all) || sum.Sites != len(all) {
		t.Fatalf("%d sites of %d, %v", len(refs), len(all), err)
	}
	want := make([]*packfile.Site, len(all))
	for i := range all {
		want[all[i].i] = &all[i].s
	}
	blocks, functions := make(map[uint64]uint64), make(map[[2]uint64]uint64)
	wrong := 0
	err = f.Each(refs, func(i int, s *packfile.Site) error {
		w := *want[i]
		eachType(&w, func(id *packfile.TypeID) { *id = types.numberOf(*id) })
		for _, x := range []bool{same(blocks, s.In, w.In), same(functions, [2]uint64{s.In, s.Of}, w.Of)} {
			if !x {
				t.Errorf("site %d: other bodies are the same", i)
			}
		}
		w.In, w.Of = s.In, s.Of
		if !reflect.DeepEqual(*s, w) {
			if wrong++; wrong < 5 {
				t.Errorf("site %d of %s (-written +read):\n%s", i, s.Function.Name, cmp.Diff(w, *s))
			}
		}
		return nil
	})
	if err != nil || wrong > 0 {
		t.Errorf("%d of %d sites are wrong; %v", wrong, len(refs), err)
	}
	names, err := f.Names()
	if err != nil {
		t.Fatal(err)
	}
	should, err := img.FunctionNames(context.Background())
	if match != nil {
		should = slices.DeleteFunc(should, func(n string) bool { return !match.Match(n) })
	}
	if err != nil || !reflect.DeepEqual(names, should) {
		t.Errorf("%d names, and the image has %d; %v", len(names), len(should), err)
	}
	byName := make(map[string][]packfile.Ref)
	for i, r := range refs {
		byName[want[i].Function.Name] = append(byName[want[i].Function.Name], r)
	}
	for i, n := range names {
		if i%max(len(names)/2000, 1) != 0 {
			continue
		}
		if one, err := f.Of(n); err != nil || !reflect.DeepEqual(one, byName[n]) {
			t.Errorf("%s has %v, and should have %v; %v", n, one, byName[n], err)
		}
	}
	t.Logf("%d sites, %d bytes but types", len(refs), len(section))
}

func same[K, V comparable](m map[K]V, k K, v V) bool {
	had, known := m[k]
	m[k] = v
	return !known || had == v
}

// eachType visits the types that a site names.
func eachType(s *packfile.Site, f func(*packfile.TypeID)) {
	fun := *s.Function
	fun.Params = append([]packfile.Param(nil), fun.Params...)
	for i := range fun.Params {
		f(&fun.Params[i].Type)
	}
	s.Function = &fun
	values := func(v *packfile.Values) {
		v.Params = append(make([]packfile.Value, 0), v.Params...)
		frame, result := *v.Frame, *v.Result
		v.Frame, v.Result = &frame, &result
		for _, x := range append([]*packfile.Value{v.Frame, v.Result}, pointers(v.Params)...) {
			if x.Own {
				f(&x.Type)
			}
			for p := &x.Pointee; *p != nil; p = &(*p).Pointee {
				c := **p
				f(&c.Type)
				*p = &c
			}
		}
	}
	values(&s.Values)
	s.Ways.In = append([]packfile.Way(nil), s.Ways.In...)
	for i := range s.Ways.In {
		if v := s.Ways.In[i].Values; v != nil {
			c := *v
			values(&c)
			s.Ways.In[i].Values = &c
		}
	}
}

func pointers[T any](l []T) (out []*T) {
	for i := range l {
		out = append(out, &l[i])
	}
	return out
}

// TestFixtures compares packs of all fixtures.
func TestFixtures(t *testing.T) {
	paths, err := filepath.Glob("../testdata/vmlinux-fixtures/*.gz")
	if err != nil || len(paths) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, p := range paths {
		t.Run(filepath.Base(p), func(t *testing.T) {
			f, err := os.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			z, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			d, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			img, err := dwarfloc.FromBytes(strings.TrimSuffix(p, ".gz"), d, nil)
			if err != nil {
				t.Fatal(err)
			}
			whole(t, img, nil)
			whole(t, img, some{1, 2})
		})
	}
}

// some matches one of so many names, by their hashes.
type some struct{ which, of uint32 }

func (x some) Match(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()%x.of == x.which
}

func (x some) Literal() (string, bool) { return "", false }

// TestKernel compares packs of whole kernels, or, unless PACKS_FULL=1, of a part of the functions of one.
func TestKernel(t *testing.T) {
	first := testenv.Vmlinux(t)
	if os.Getenv("PACKS_FULL") != "1" {
		img, err := dwarfloc.Open(first, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		whole(t, img, some{3, 40})
		return
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(first), "vmlinux-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			img, err := dwarfloc.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			whole(t, img, nil)
		})
	}
}
