package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
)

// Task is what a worker does: some variants of one subject.
type Task struct {
	Seed    uint64
	File    string // the good file
	Object  bool
	Numbers []int
	Dir     string // for the variants
	Verify  bool   // load prologues into the running kernel
	Explain bool   // write the answers to Dir too
}

// Outcome is what came of a variant.
type Outcome struct {
	Number int
	Kind   string
	Done   []string // the mutations
	Answer string   // "damaged", "unchanged" or "changed"; "" if there was nothing to mutate
	Faults []Fault
}

// maxAddresses bounds a worker's address space: a machine must survive what is a finding.
const maxAddresses = 16 << 30

// races reports whether this program was built with the race detector, which needs more addresses than
// there are, and ten times the time.
func races() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Work reads a task, as JSON, and writes an Outcome for each of its variants, one a line, before and after
// it is asked: the first has no Answer.
func Work(in io.Reader, out io.Writer) error {
	var t Task
	if err := json.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	if limit := (unix.Rlimit{Cur: maxAddresses, Max: maxAddresses}); !races() {
		if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
			return err
		}
	}
	good, err := os.ReadFile(t.File)
	if err != nil {
		return err
	}
	w := &worker{Task: t, good: good, out: json.NewEncoder(out), known: make(map[string]bool)}
	if w.layout, err = newLayout(good); err != nil {
		return err
	}
	if err := w.askGood(); err != nil {
		return err
	}
	for _, n := range t.Numbers {
		if err := w.variant(n); err != nil {
			return err
		}
	}
	w.flush()
	return nil
}

type worker struct {
	Task
	*layout
	good   []byte
	answer string // of the good file
	out    *json.Encoder
	known  map[string]bool // prologues that were seen
	codes  []bpfexec.Code  // that are not verified yet
	from   []Outcome       // the variants that they are of
}

// askGood asks the good file, at the path of its variants. That it has faults would be a finding too.
func (w *worker) askGood() error {
	if err := os.WriteFile(w.path(), w.good, 0o600); err != nil {
		return err
	}
	a := askObject
	if !w.Object {
		a = func(ctx context.Context, good []byte) answer { return ask(ctx, len(good), w.opener(w.path(), ""), nil) }
	}
	answer := a(context.Background(), w.good)
	if len(answer.Faults) > 0 {
		return fmt.Errorf("%s, which is not damaged: %v", w.File, answer.Faults)
	}
	w.answer = answer.Digest
	return nil
}

// path is where variants are. It does not depend on their numbers: it is part of answers.
func (w *worker) path() string { return filepath.Join(w.Dir, "variant") }

func (w *worker) opener(path, cache string) func() (*dwarfloc.Image, error) {
	return func() (*dwarfloc.Image, error) {
		return dwarfloc.Open(path, &dwarfloc.Options{CacheDir: cache})
	}
}

// generator returns the source of everything that is random in a variant.
func generator(seed uint64, number int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(number)))
}

// variant makes one variant and asks it.
func (w *worker) variant(number int) error {
	o := Outcome{Number: number}
	r := generator(w.Seed, number)
	if !w.Object && r.IntN(len(kinds)+1) == 0 {
		return w.keptVariant(o, r)
	}
	var data []byte
	for range 20 {
		k := &kinds[r.IntN(len(kinds))]
		o.Kind = k.name
		if data, o.Done = mutate(w.layout, w.good, r, k); data != nil {
			break
		}
	}
	if w.Object {
		o.Kind = objectKind
	}
	if err := w.out.Encode(o); err != nil || data == nil {
		return err
	}
	path := w.path()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx := context.Background()
	var first, second answer
	if w.Object {
		first, second = askObject(ctx, data), askObject(ctx, data)
	} else {
		cache := filepath.Join(w.Dir, "cache")
		defer func() { _ = os.RemoveAll(cache) }()
		first, second = ask(ctx, len(data), w.opener(path, ""), w.log("1")), ask(ctx, len(data), w.opener(path, cache), w.log("2"))
		if first.Digest == second.Digest && keptFile(cache) != "" {
			second = ask(ctx, len(data), w.opener(path, cache), w.log("2"))
		}
	}
	runtime.ReadMemStats(&after)
	o.judge(&first, &second, w.answer)
	if limit := 64<<20 + 20*uint64(len(data)); after.Sys > limit && after.Sys-before.Sys > limit/2 {
		o.Faults = append(o.Faults, Fault{"memory", fmt.Sprintf("%d MB for a file of %d bytes", after.Sys>>20, len(data))})
	}
	w.verify(&o, first.codes)
	return w.out.Encode(o)
}

// keptVariant damages the good file's index instead of the file.
func (w *worker) keptVariant(o Outcome, r *rand.Rand) error {
	o.Kind = keptKind
	cache := filepath.Join(w.Dir, "cache")
	defer func() { _ = os.RemoveAll(cache) }()
	path := w.path()
	if err := os.WriteFile(path, w.good, 0o600); err != nil {
		return err
	}
	img, err := w.opener(path, cache)()
	if err == nil {
		_, err = img.FunctionNames(context.Background())
		_ = img.Close()
	}
	if err != nil {
		return w.out.Encode(o)
	}
	if o.Done, err = mutateKept(cache, r); err != nil {
		return err
	}
	if err := w.out.Encode(o); err != nil || o.Done == nil {
		return err
	}
	ctx := context.Background()
	damaged, err := os.ReadFile(keptFile(cache))
	if err != nil {
		return err
	}
	first := ask(ctx, len(w.good), w.opener(path, cache), w.log("1"))
	if file := keptFile(cache); file != "" { // or it is another one by now
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			return err
		}
	}
	second := ask(ctx, len(w.good), w.opener(path, cache), w.log("2"))
	o.judge(&first, &second, w.answer)
	return w.out.Encode(o)
}

// judge compares the two answers with each other and with that of the good file.
func (o *Outcome) judge(first, second *answer, good string) {
	o.Faults = append(first.Faults, second.Faults...)
	if first.Digest != second.Digest {
		o.Faults = append(o.Faults, Fault{"differs", fmt.Sprintf("%.200s, then %.200s", first.Err, second.Err)})
	}
	switch {
	case first.Err != "":
		o.Answer = "damaged"
	case first.Digest == good:
		o.Answer = "unchanged"
	default:
		o.Answer = "changed"
	}
}

// log is where the answers are written as text, or nil.
func (w *worker) log(name string) io.Writer {
	if !w.Explain {
		return nil
	}
	f, err := os.Create(filepath.Join(w.Dir, "answer"+name))
	if err != nil {
		return nil
	}
	return f
}

// verify remembers prologues that were not seen before, and verifies some of them together.
func (w *worker) verify(o *Outcome, codes []bpfexec.Code) {
	if !w.Verify {
		return
	}
	for _, c := range codes {
		var key bytes.Buffer
		fmt.Fprintf(&key, "%d %d %v %d ", c.Args, c.Record, c.IsRecord, len(c.Insns))
		for _, ins := range c.Insns {
			fmt.Fprintf(&key, "%x %x %x %x ", ins.OpCode, ins.Dst|ins.Src<<4, ins.Offset, ins.Constant)
		}
		if w.known[key.String()] {
			continue
		}
		w.known[key.String()] = true
		w.codes, w.from = append(w.codes, c), append(w.from, *o)
		if len(w.codes) >= 100 {
			w.flush()
		}
	}
}

// flush loads the prologues. When the verifier rejects them, it says which.
func (w *worker) flush() {
	for len(w.codes) > 0 {
		n := bpfexec.Fits(w.codes)
		if n == 0 {
			n = 1
		} else if err := load(w.codes[:n]...); err != nil {
			for i := range n {
				if err := load(w.codes[i]); err != nil {
					o := w.from[i]
					o.Faults = []Fault{{"rejected", fmt.Sprintf("%v\n%v", w.codes[i].Insns, err)}}
					_ = w.out.Encode(o) // the parent is gone if it fails
				}
			}
		}
		w.codes, w.from = w.codes[n:], w.from[n:]
	}
}

func load(codes ...bpfexec.Code) error {
	p, err := bpfexec.Load(codes...)
	if err != nil {
		return err
	}
	return p.Close()
}
