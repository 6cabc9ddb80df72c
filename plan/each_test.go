package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/probe"
	"github.com/bpfprologue/bpfprologue/prologue"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// siteText prints all that a plan says about a site.
func siteText(p *Plan, s *Site) string {
	out := fmt.Sprintf("%v %#x view %d, %d of %d %v %q, return %v, refused %v, %v %v", s, s.Addr, s.View, s.Way.Number, s.Way.Of, s.Way.Again, s.Way.Unknown, s.Return, s.Refused, s.Callers, p.Convention)
	for i := range s.Args {
		a := &s.Args[i]
		out += fmt.Sprintf("\n  %s %v %s: %s, %v %d %d %d, %v", a.Name, a.Variable.Type, a.Variable.Name, a.Loc.Text(p.Image.Arch()), a.Kind, a.Size, a.MaxBytes, a.DefinitionArg, a.Unfetched)
		if p.Convention == prologue.ConventionRecord {
			out += fmt.Sprint(" ", s.Layout.Fields[i])
		}
	}
	return out
}

// visited returns the sites and instances of a visit, as text.
func visited(visit func(Visitor[string]) error) ([]string, error) {
	var out []string
	err := visit(Visitor[string]{
		Site: func(p *Plan, s *Site) (string, error) { return siteText(p, s), nil },
		Next: func(t string, instance int) error {
			out = append(out, fmt.Sprintf("%s\n  instance %d", t, instance))
			return nil
		},
		Instance: func(_ *Plan, in *Instance) error {
			out = append(out, fmt.Sprintf("instance %d, %v\n%v", in.Number, in.Multi, in.Prologue))
			return nil
		},
	})
	return out, err
}

// inParts makes parts small, so that a fixture has many.
func inParts(t *testing.T) {
	first, large := firstPart, largePart
	firstPart, largePart = 1, 5
	t.Cleanup(func() { firstPart, largePart = first, large })
}

func definition(t *testing.T, text string) *probe.Definition {
	t.Helper()
	def, err := probe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// same compares a visit of sites with the whole plan.
func same(t *testing.T, img *dwarfloc.Image, def *probe.Definition, o Options) (sites int) {
	t.Helper()
	ctx := context.Background()
	list, err := streamed(ctx, img, def, &o)
	if list == nil && err == nil {
		t.Fatalf("%v is not streamed", def)
	}
	want, wantErr := visited(func(v Visitor[string]) error { return whole(ctx, img, def, o, v) })
	var got []string
	if err == nil {
		got, err = visited(func(v Visitor[string]) error { return stream(ctx, list, img, def, o, v) })
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("%s: %v: error %v, want %v", img.Path(), def, err, wantErr)
		return 0
	}
	if wantErr != nil {
		return 0 // it may come after some sites
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %v, %+v: (-whole +visited):\n%.2000s", img.Path(), def, o, diff)
	}
	return len(got)
}

// TestEach compares what Each visits with the plan that New makes: the same sites and instances,
// in the same order, and the same errors.
func TestEach(t *testing.T) {
	inParts(t)
	n := 0
	for _, name := range fixtures.Names() {
		img := testenv.Fixture(t, name)
		for _, text := range []string{"* $params", "* $vars", "* arg1", "*%return $retval", "*%exit $params", "my_func_* arg1 $params", "*", "* n:string", "inlines=no;* $params", "nothing_* a", "* arg9"} {
			def := definition(t, text)
			for _, o := range []Options{{}, {EntryOnly: true}, {Missing: MissingSkip}, {Convention: prologue.ConventionRegisters}, {Convention: prologue.ConventionRecord}} {
				n += same(t, img, def, o)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d sites and instances were compared", n)
	}
}

// TestEachOfKernel is TestEach on a part of a kernel.
func TestEachOfKernel(t *testing.T) {
	path := os.Getenv("BENCH_VMLINUX")
	if path == "" {
		path = testenv.Vmlinux(t)
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = img.Close() })
	for _, text := range []string{"tcp_v4_* $params", "vfs_* file pos"} {
		if same(t, img, definition(t, text), Options{}) < 50 {
			t.Errorf("%s: too few sites", text)
		}
	}
}

// TestEachStops ends a visit in its midst: by the context, and by each of the visitor's functions.
func TestEachStops(t *testing.T) {
	inParts(t)
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	def := definition(t, "* $params")
	list, err := streamed(context.Background(), img, def, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for _, at := range []string{"context", "site", "next", "instance"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		var order []string
		fail := func(where string) error {
			if where != at || len(order) < 3 {
				return nil
			}
			return stop
		}
		err := stream(ctx, list, img, def, Options{}, Visitor[string]{
			Site: func(_ *Plan, s *Site) (string, error) { return s.Function, fail("site") },
			Next: func(name string, _ int) error {
				order = append(order, name)
				if fail("context") != nil {
					cancel(stop)
				}
				return fail("next")
			},
			Instance: func(*Plan, *Instance) error { return fail("instance") },
		})
		cancel(nil)
		if !errors.Is(err, stop) {
			t.Errorf("stopped at %s: error %v", at, err)
		}
		if len(order) < 3 || len(order) >= list.Len() || !slices.IsSorted(order) {
			t.Errorf("stopped at %s: visited %d of %d sites: %q", at, len(order), list.Len(), order)
		}
	}
}
