package harm

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/refusals"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// TestEncodings runs a seeded part of all encodings with and without a probe, and every one that was found wrong before. HARM_COUNT=0
// runs all.
func TestEncodings(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	testenv.Tool(t, Compilers["amd64"])
	n, seed := 8000, Seed
	for name, to := range map[string]func(int){"HARM_COUNT": func(v int) { n = v }, "HARM_SEED": func(v int) { seed = uint64(v) }} {
		if text := os.Getenv(name); text != "" {
			v, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			to(v)
		}
	}
	program, err := Compile(t.TempDir(), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(program, t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	codes := append(Known(), Encodings(n, seed)...)
	all, err := r.Run(context.Background(), codes, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for i := range all {
		o := &all[i]
		switch v := o.Verdict(); {
		case v == Overrefused:
			count[string(v)]++
			t.Logf("% x: %s", o.Code, v)
		case v != Agrees:
			t.Errorf("% x: %s: %s (%d hits, signal %d)", o.Code, v, o.What(), o.Hits, o.Without.Signal)
		case o.Undetermined:
			count["undetermined"]++
			if os.Getenv("HARM_COUNT") == "0" {
				t.Logf("undetermined: % x: %s", o.Code, o.What())
			}
		case o.Differs():
			count["differ, and are refused"]++
		case o.Hits > 0:
			count["the same with a probe"]++
		default:
			count["refused by the kernel"]++
		}
	}
	t.Logf("seed %d, %d encodings: %v", seed, len(all), count)
	// What is misread can come to the same: a masked operation that changes nothing, a PAUSE with REX.B.
	if n := count[string(Overrefused)]; n > 2+count["differ, and are refused"]/100 {
		t.Errorf("%d %s", n, Overrefused)
	}
	if count["differ, and are refused"] == 0 || count["the same with a probe"] < len(all)/4 {
		t.Error("the runs say nothing")
	}
}

type program struct {
	name, build string
	args        []string
	input       string
}

// programs are what TestPrograms builds: a command for each, whose output is a program in $OUT, and how it is run.
var programs = []program{
	{"numbers, vectors of the machine", "gcc -g -O3 -march=native -ffast-math -o $OUT testdata/numbers.c", nil, ""},
	{"numbers, aligned loops", "gcc -g -O2 -ftree-vectorize -o $OUT testdata/numbers.c", nil, ""},
	{"numbers, LLVM", "clang-16 -g -O2 -march=native -o $OUT testdata/numbers.c", nil, ""},
	{"lua", "gcc-12 -g -O2 -DLUA_USE_LINUX -Wl,-E -o $OUT $(ls $SOURCE/lua5.4/src/*.c | grep -v luac.c) -lm -ldl", []string{"-"}, `
local t = {} for i = 1, 60 do t[i] = (i * 7919) % 101 end table.sort(t)
print(table.concat(t, " "), ("x"):rep(20), string.format("%5.2f %d %s", 3.5, 42, "a"), #t)
print(pcall(error, "e"), select("#", 1, 2, 3), ("hello world"):gsub("o", "0"), math.floor(7.5), 7 // 2, 2^10)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(co(), co(), co())`},
}

const zlib = "gcc-12 -g -O2 -DHAVE_UNISTD_H -I$SOURCE/zlib -o $OUT $SOURCE/zlib/*.c $SOURCE/zlib/test/minigzip.c"

func init() {
	var text, packed strings.Builder
	for i := range 150 {
		fmt.Fprintf(&text, "%d %x ", i*i%977, i*7919)
	}
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text.String())
	_ = w.Close()
	programs = append(programs, []program{
		{"zlib, compresses", zlib, nil, text.String()},
		{"zlib, decompresses", zlib, []string{"-d"}, packed.String()},
		{"Go", "go build -o $OUT testdata/goroutines.go", nil, ""},
		{"Rust", "rustc -g -O -o $OUT testdata/shapes.rs", nil, ""},
	}...)
}

// TestPrograms has probes at all instructions of programs at once, but for those that are refused: each prints what it printed.
func TestPrograms(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	for _, tt := range programs {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program")
			build := exec.Command("sh", "-c", tt.build)
			build.Env = append(os.Environ(), "OUT="+path, "SOURCE="+filepath.Join(testenv.Cache(), "source"))
			if out, err := build.CombinedOutput(); err != nil {
				testenv.Missing(t, "%s: %v\n%s", tt.build, err, out)
			}
			got := withProbe(t, &Program{Path: path, Args: tt.args, Input: tt.input})
			for why := range got.Refused {
				if tt.name == "Go" && strings.Contains(why, "keeps variables") {
					t.Errorf("%q: nothing of Go is there", why)
				}
			}
		})
	}
}

func withProbe(t *testing.T, p *Program) Probed {
	img, err := dwarfloc.Open(p.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	got, err := p.Probe(context.Background(), img)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d functions, %d instructions, %d hits, refused %v", got.Functions, got.Instructions, got.Hits, got.Refused)
	for _, at := range got.Wrong {
		t.Errorf("a probe at %#x changes what it does: %s", at, got.How)
	}
	if got.Hits == 0 {
		t.Error("no hits")
	}
	all, err := probe.Parse("*")
	if err != nil {
		t.Fatal(err)
	}
	sites, err := plan.New(context.Background(), img, all, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	moved, harmful := 0, make(map[string]int)
	for i := range sites.Sites {
		s := &sites.Sites[i]
		if s.MovedFrom != 0 {
			moved++
		}
		if errors.Is(s.Refused, refusals.ErrHarmful) {
			why := s.Refused.Error()
			harmful[why[strings.LastIndex(why, ": ")+2:]]++
		}
	}
	refused := 0
	for _, n := range harmful {
		refused += n
	}
	t.Logf("a definition of all functions: %d sites, %d moved along, %d refused for harm: %v", len(sites.Sites), moved, refused, harmful)
	if refused*100 > len(sites.Sites) {
		t.Errorf("%d of %d sites are refused", refused, len(sites.Sites))
	}
	return got
}
