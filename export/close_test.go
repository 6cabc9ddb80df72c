package export_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/coverage"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/compute"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// asked is an image, and what came from it before it was closed.
type asked struct {
	img   *dwarfloc.Image
	sites []*dwarfloc.Site
	table *attachable.Table
	plan  *plan.Plan
}

// questions are what can be asked of an image, with the answers as text.
var questions = map[string]func(a *asked) (string, error){
	"Sites": func(a *asked) (string, error) {
		sites, err := a.img.Sites(context.Background(), nil)
		return fmt.Sprint(sites), err
	},
	"Sites of a name": func(a *asked) (string, error) {
		sites, err := a.img.Sites(context.Background(), dwarfloc.Name("pkt_hold"))
		return fmt.Sprint(sites), err
	},
	"FunctionNames": func(a *asked) (string, error) {
		names, err := a.img.FunctionNames(context.Background())
		return fmt.Sprint(names), err
	},
	"LineSites": func(a *asked) (string, error) {
		sites, err := a.img.LineSites(context.Background(), a.sites, func(_ *dwarfloc.Site, _ string, line int) bool { return line%3 == 0 })
		return fmt.Sprint(sites), err
	},
	"Lookup": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			v, err := s.Lookup("ring_zero")
			return located(a, err, v), err
		})
	},
	"Params": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			v, err := s.Params()
			return located(a, err, v...), err
		})
	},
	"Variables": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			v, err := s.Variables()
			return located(a, err, v...), err
		})
	},
	"Resolve": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			v, err := compute.Resolve(s, &syntax.Expr{Name: "p", Path: []syntax.Step{{Kind: syntax.StepArrow, Member: "len"}}})
			return located(a, err, v), err
		})
	},
	"Members, Follow and String of types": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			params, err := s.Params()
			text := ""
			for _, v := range params {
				text += v.Type.String() + " "
				followed, err := compute.Follow(v, []syntax.Step{{Kind: syntax.StepArrow, Member: "len"}})
				if err != nil {
					return "", err
				}
				el, err := v.Type.Elem()
				if err != nil {
					return "", err
				}
				if el, err = el.Resolve(); err != nil {
					return "", err
				}
				members, err := el.Members()
				if err != nil {
					return "", err
				}
				for i := range members {
					text += members[i].Name + " " + members[i].Type.String() + ";"
				}
				text += located(a, nil, followed)
			}
			return text, errors.Join(err, a.img.Changed()) // String has no error
		})
	},
	"Ways": func(a *asked) (string, error) {
		ways, err := inside.Ways(a.img, context.Background(), a.sites)
		text := fmt.Sprint(ways)
		for i := range ways {
			text += fmt.Sprint(inside.WaysIn(a.sites[i], &ways[i], false))
		}
		return text, errors.Join(err, a.img.Changed()) // WaysIn has no error
	},
	"Along": func(a *asked) (string, error) {
		along, err := inside.Along(a.img, context.Background(), a.sites, func(i int) ([]*dwarfloc.Variable, bool) { return nil, true })
		return fmt.Sprint(along), err
	},
	"CheckInstructions": func(a *asked) (string, error) {
		problems, err := inside.CheckInstructions(a.img, a.sites)
		return fmt.Sprint(problems), err
	},
	"Symbols": func(a *asked) (string, error) {
		return fmt.Sprint(slices.Collect(inside.File(a.img).Symbols())), a.img.Changed()
	},
	"Bytes": func(a *asked) (string, error) {
		d, err := inside.File(a.img).Bytes(a.sites[0].Addr, 8)
		return fmt.Sprintf("% x", d), err
	},
	"Digest": func(a *asked) (string, error) {
		d, err := inside.File(a.img).Digest()
		return fmt.Sprintf("%x", d), err
	},
	"CompilationDir": func(a *asked) (string, error) {
		return inside.CompilationDir(a.img, "queue.c"), a.img.Changed()
	},
	"plan.New": func(a *asked) (string, error) {
		p, err := newPlan(a.img)
		if err != nil {
			return "", err
		}
		text := ""
		for i := range p.Instances {
			text += p.Instances[i].Prologue.String()
		}
		return text + fmt.Sprint(len(p.Sites)), nil
	},
	"coverage": func(a *asked) (string, error) {
		r, err := coverage.Measure(context.Background(), a.img)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%+v", *r), nil
	},
	"coverage of probes": func(a *asked) (string, error) {
		r, err := coverage.MeasureAll(context.Background(), a.img)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%+v", *r.Probes), nil
	},
	"attachable": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			c := a.table.At(s.Addr)
			if c.String() == "not-read" {
				return "", a.img.Changed()
			}
			return c.String(), nil
		})
	},
	"methods": func(a *asked) (string, error) {
		return each(a, func(s *dwarfloc.Site) (string, error) {
			text := a.table.Method(s.Addr).String() + attachable.UprobeMethod(a.img, s.Addr).String()
			return text, a.img.Changed()
		})
	},
	"tracefs": func(a *asked) (string, error) {
		var b strings.Builder
		err := export.Tracefs(&b, a.plan, export.Options{Kernel: true})
		return b.String(), err
	},
	"bpftrace": func(a *asked) (string, error) {
		var b strings.Builder
		err := export.Bpftrace(&b, a.plan, export.Options{Kernel: true})
		return b.String(), err
	},
	"C": func(a *asked) (string, error) {
		var b strings.Builder
		err := export.C(&b, a.plan, export.Options{Kernel: true})
		return b.String(), err
	},
}

// each asks about each site.
func each(a *asked, ask func(s *dwarfloc.Site) (string, error)) (string, error) {
	var all strings.Builder
	for _, s := range a.sites {
		text, err := ask(s)
		if err != nil {
			return "", err
		}
		all.WriteString(text)
		all.WriteByte('\n')
	}
	return all.String(), nil
}

// located prints where variables are.
func located(a *asked, err error, vars ...*dwarfloc.Variable) string {
	if err != nil {
		return ""
	}
	text := ""
	for _, v := range vars {
		text += fmt.Sprint(v.Name, " ", v.Loc.Text(a.img.Arch()), " ", v.Reason, ";")
	}
	return text
}

func newPlan(img *dwarfloc.Image) (*plan.Plan, error) {
	def, err := probe.Parse("pkt_* $params")
	if err != nil {
		return nil, err
	}
	return plan.New(context.Background(), img, def, plan.Options{})
}

func open(path, cache string) (*asked, error) {
	img, err := dwarfloc.Open(path, &dwarfloc.Options{CacheDir: cache})
	if err != nil {
		return nil, err
	}
	a := &asked{img: img}
	if a.sites, err = img.Sites(context.Background(), nil); err == nil {
		if a.table, err = attachable.New(img); err == nil {
			a.plan, err = newPlan(img)
		}
	}
	return a, err
}

// TestCloseInUse: an image that is closed while 64 goroutines use it gives each of them the right answer, or
// the error that it was closed. When all have ended, it is not mapped any more.
func TestCloseInUse(t *testing.T) {
	dir := t.TempDir()
	path, err := fixtures.WriteTo(dir, "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, "cache")
	whole, err := open(path, cache)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for name, ask := range questions {
		if want[name], err = ask(whole); err != nil || want[name] == "" {
			t.Fatalf("%s: %q, %v", name, want[name], err)
		}
	}
	if err := whole.img.Close(); err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(questions))
	right, closed := 0, 0
	var mu sync.Mutex
	for round := range 9 {
		if round == 4 {
			cache = "" // and without a kept index from here on
		}
		a, err := open(path, cache)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 64 {
			name := names[(i+round)%len(names)]
			wg.Go(func() {
				for {
					got, err := questions[name](a)
					mu.Lock()
					if err == nil {
						right++
					} else {
						closed++
					}
					mu.Unlock()
					switch {
					case err == nil && got != want[name]:
						t.Errorf("%s: a wrong answer:\n%s\nwant\n%s", name, got, want[name])
						return
					case err != nil && (!errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), path+": file already closed")):
						t.Errorf("%s: %v", name, err)
						return
					case err != nil:
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(1+20_000*(round%3))) * time.Microsecond)
		for range 2 {
			wg.Go(func() {
				if err := a.img.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		mapped, err := os.ReadFile("/proc/self/maps")
		if err == nil && strings.Contains(string(mapped), dir) {
			t.Fatalf("round %d: it is still mapped:\n%s", round, mapped)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d right answers, %d times closed", right, closed)
}

// TestCloseInside: Close waits for nobody, so it can be called from where EachSite calls.
func TestCloseInside(t *testing.T) {
	path, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = img.EachSite(context.Background(), nil, func(_ int, s dwarfloc.SiteRef) error { return img.Close() })
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	module, err := dwarfloc.Open(path, &dwarfloc.Options{TypesOf: img})
	if err != nil {
		t.Fatal(err)
	}
	defer module.Close()
	if _, err := module.Sites(context.Background(), nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the image that completes its types was closed: %v", err)
	}
}
