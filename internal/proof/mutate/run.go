package mutate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Run is a mutation run.
type Run struct {
	Seed    uint64
	Numbers []int    // of the variants
	Dir     string   // for subjects and variants
	Command []string // starts a worker, which calls Work
	Workers int
	Verify  bool // load prologues into the running kernel
	Explain bool // write the answers of each variant to its folder
	// Log gets a line for each finding, and progress.
	Log func(format string, args ...any)

	mu      sync.Mutex
	results map[int]*Outcome
	done    int
}

// SubjectOf returns the index of a variant's subject.
func SubjectOf(subjects []Subject, number int) int {
	all := 0
	for i := range subjects {
		all += subjects[i].Share
	}
	at := number % all
	for i := range subjects {
		if at -= subjects[i].Share; at < 0 {
			return i
		}
	}
	return 0
}

// perShare is how many variants, for each share of a subject, a worker asks before another one is
// started: few of what takes long.
const perShare = 3

// Do makes the variants, asks them and returns what came of them, by number. A subject that cannot be
// made is left out, and Log gets the reason.
func (r *Run) Do(ctx context.Context, subjects []Subject) (map[int]*Outcome, error) {
	r.results = make(map[int]*Outcome)
	byIndex := make(map[int][]int)
	for _, n := range r.Numbers {
		i := SubjectOf(subjects, n)
		byIndex[i] = append(byIndex[i], n)
	}
	tasks := make(chan Task)
	var work sync.WaitGroup
	errs := make([]error, r.Workers)
	for i := range r.Workers {
		work.Go(func() {
			for t := range tasks {
				t.Dir = filepath.Join(r.Dir, fmt.Sprintf("worker%d", i))
				errs[i] = errors.Join(errs[i], r.task(ctx, t))
			}
		})
	}
	var makeErr error
	for i := range slices.Backward(subjects) { // the large ones are at the end, and begin
		numbers := byIndex[i]
		if len(numbers) == 0 || ctx.Err() != nil {
			continue
		}
		dir := filepath.Join(r.Dir, fmt.Sprintf("subject%d", i))
		if makeErr = os.MkdirAll(dir, 0o700); makeErr != nil {
			break
		}
		file := filepath.Join(dir, "good")
		if err := subjects[i].make(ctx, dir, file); err != nil {
			r.Log("%s: not made: %v", subjects[i].Name, err)
			continue
		}
		if makeErr = os.Chmod(file, 0o600); makeErr != nil {
			break
		}
		for len(numbers) > 0 {
			n := min(perShare*subjects[i].Share, len(numbers))
			tasks <- Task{Seed: r.Seed, File: file, Object: subjects[i].Object, Numbers: numbers[:n], Verify: r.Verify, Explain: r.Explain}
			numbers = numbers[n:]
		}
	}
	close(tasks)
	work.Wait()
	return r.results, errors.Join(append(errs, makeErr, ctx.Err())...)
}

// task gives a task to workers: to another one where the last one died.
func (r *Run) task(ctx context.Context, t Task) error {
	for len(t.Numbers) > 0 && ctx.Err() == nil {
		if err := os.MkdirAll(t.Dir, 0o700); err != nil {
			return err
		}
		asked, err := r.worker(ctx, t)
		if err != nil {
			return err
		}
		t.Numbers = t.Numbers[asked:]
	}
	return nil
}

// patience is how long a worker may be silent: it asks several times, and others use the machine.
func patience(size int64) time.Duration { return time.Minute + 30*limitFor(int(size)) }

// worker starts a worker and returns how many variants it has asked, or has died of.
func (r *Run) worker(ctx context.Context, t Task) (asked int, err error) {
	st, err := os.Stat(t.File)
	if err != nil {
		return 0, err
	}
	task, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(task), &limited{&stderr, 1 << 20}
	cmd.Env = append(os.Environ(), WorkerVariable+"=1", "GOTRACEBACK=all")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	silent := time.AfterFunc(patience(st.Size()), func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // for the stacks
	defer silent.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	var last *Outcome // that is being asked
	for lines.Scan() {
		silent.Reset(patience(st.Size()))
		o := new(Outcome)
		if err := json.Unmarshal(lines.Bytes(), o); err != nil {
			return 0, errors.Join(fmt.Errorf("a worker said %.200q", lines.Text()), cmd.Process.Kill(), cmd.Wait())
		}
		if r.took(o); o.Answer == "" && o.Done != nil && len(o.Faults) == 0 {
			last = o
		} else {
			last = nil
		}
	}
	err = cmd.Wait()
	if err == nil || ctx.Err() != nil {
		return len(t.Numbers), lines.Err()
	}
	if last == nil {
		return 0, fmt.Errorf("%s: a worker ended between variants: %w\n%s", t.File, err, &stderr)
	}
	last.Faults = []Fault{{"death", err.Error() + "\n" + stderr.String()}}
	r.took(last)
	for i, n := range t.Numbers {
		if n == last.Number {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("a worker said something about variant %d, which is not its own", last.Number)
}

// WorkerVariable is set in the environment of workers.
const WorkerVariable = "MUTATE_WORKER"

// took notes an outcome. There are several for a variant: the last answer and all faults count.
func (r *Run) took(o *Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.results[o.Number]
	if known == nil {
		c := *o
		known = &c
		r.results[o.Number] = known
		if r.done++; r.done%500 == 0 {
			r.Log("%d of %d variants", r.done, len(r.Numbers))
		}
	} else {
		if o.Answer != "" {
			known.Answer = o.Answer
		}
		known.Faults = append(known.Faults, o.Faults...)
	}
	for _, f := range o.Faults {
		r.Log("variant %d, %s (%s): %s: %s", o.Number, o.Kind, strings.Join(o.Done, "; "), f.Kind, f.Text)
	}
}

// limited is a writer that forgets what is too much.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(l.left, len(b))
	l.left -= n
	if _, err := l.w.Write(b[:n]); err != nil {
		return 0, err
	}
	return len(b), nil
}
