// Package endprobes ends kprobes, which the kernel does one after the other, in another process once the user wants to have his prompt back.
package endprobes

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// atOnce is how long the end of probes may take before the user gets his prompt back.
const atOnce = 500 * time.Millisecond

// Ending ends kprobes: the kernel ends one after the other, with some milliseconds for each. After
// Ctrl-C the user waits for his prompt: then another process goes on.
type Ending struct {
	ctx   context.Context // of the command
	files []*os.File      // to be ended by another process
}

// New returns an Ending: until the context ends, this process ends the probes.
func New(ctx context.Context) *Ending { return &Ending{ctx: ctx} }

// End is instances.AttachOptions.End.
func (e *Ending) End(files []*os.File) error {
	if e.ctx.Err() == nil {
		return instances.EndProbes(files, nil)
	}
	e.files = append(e.files, files...)
	return nil
}

// Finish ends what is left when all is closed.
func (e *Ending) Finish() error {
	if len(e.files) == 0 {
		return nil
	}
	rest, err := endElsewhere(e.files)
	if err != nil {
		return errors.Join(err, instances.EndProbes(e.files, nil))
	}
	if rest.left > 0 {
		terminal.Fprintf(screen.Stderr, "%s do nothing any more; process %d is ending them, for about %v\n",
			screen.Count(rest.left, "probe"), rest.pid, rest.time.Round(time.Second)+time.Second)
	}
	return nil
}

// rest is what another process has to end.
type rest struct {
	pid  int
	left int           // probes
	time time.Duration // what that will take, as it went so far
}

// endElsewhere starts a process that ends probes, and waits for it, but not for long.
func endElsewhere(files []*os.File) (*rest, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ended, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ended.Close()
	cmd := exec.Command(self, Verb, strconv.Itoa(len(files)))
	cmd.ExtraFiles = append([]*os.File{to}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a second Ctrl-C is not for it
	err = cmd.Start()
	if err = errors.Join(err, to.Close()); err != nil {
		return nil, err
	}
	// That process has them now: closing them here takes no time.
	for _, f := range files {
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	r := &rest{pid: cmd.Process.Pid, left: len(files)}
	start := time.Now()
	if err := ended.SetReadDeadline(start.Add(atOnce)); err != nil {
		return nil, err
	}
	for buf := make([]byte, 4096); ; {
		n, err := ended.Read(buf)
		r.left -= n
		if err != nil {
			if errors.Is(err, io.EOF) {
				return r, cmd.Wait()
			}
			break
		}
	}
	if n := len(files) - r.left; n > 0 {
		r.time = time.Since(start) / time.Duration(n) * time.Duration(r.left)
	}
	return r, cmd.Process.Release()
}

// Verb is the hidden verb by which the tool runs itself; its argument is the number of probes.
const Verb = "end-probes"

// Serve ends as many probes as the process was started with, from descriptor 4 on. It writes a byte to
// descriptor 3 for each.
func Serve(probes string) error {
	n, err := strconv.ParseUint(probes, 10, 24)
	if err != nil {
		return err
	}
	const first = 3
	said := os.NewFile(first, "said")
	files := make([]*os.File, n)
	for i := range files {
		files[i] = os.NewFile(uintptr(first+1+i), "probe")
	}
	var silent atomic.Bool // nobody listens any more
	return instances.EndProbes(files, func() {
		if !silent.Load() {
			_, err := said.Write([]byte{0})
			silent.Store(err != nil)
		}
	})
}
