// Command init is the only program of a guest (package guest): process 1 of its kernel. Its
// children attach the task's probes, make its calls, and report; it switches the machine
// off. Started anywhere else it does nothing.
package main

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// worker is the argument of the child of init that attaches.
const worker = "work"

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == guest.Calls:
		makeCalls()
		return
	case len(os.Args) == 3 && os.Args[1] == guest.Workload:
		makeWork(os.Args[2])
		return
	case len(os.Args) == 3 && os.Args[1] == guest.Allocate:
		if err := allocate(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 3 && os.Args[1] == guest.Steady:
		status, _ := strconv.Atoi(os.Args[2])
		os.Exit(status)
	case len(os.Args) == 2 && os.Args[1] == guest.Steady:
		if err := steady(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 2 && os.Args[1] == guest.Vectors:
		if err := vectors(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 4 && os.Args[1] == guest.Encodings:
		if err := encodings(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) > 3 && os.Args[1] == guest.Kill:
		if err := kill(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 3 && os.Args[1] == guest.ProbeAll:
		if err := probeAll(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) > 3 && os.Args[1] == guest.Limited:
		fmt.Fprintln(os.Stderr, limited(os.Args[2], os.Args[3:]))
		os.Exit(1)
	case len(os.Args) > 2 && os.Args[1] == guest.Interrupt:
		if err := interrupt(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 2 && os.Args[1] == worker:
		if err := run(); err != nil {
			fmt.Println(err) // to the console
			os.Exit(1)
		}
		return
	case os.Getpid() != 1:
		fmt.Fprintln(os.Stderr, "this is process 1 of a test's kernel")
		os.Exit(2)
	}
	if err := begin(); err != nil {
		fmt.Println(err)
	}
	// Process 1 switches the machine off, whether the work succeeds or not.
	work := exec.Command("/init", worker)
	work.Stdout, work.Stderr = os.Stdout, os.Stderr
	if err := work.Run(); err != nil {
		fmt.Println(err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// Some machines cannot be switched off. There the kernel panics when process 1
	// ends, and with panic=-1 that ends the emulator.
}

// reporter writes lines.
type reporter struct {
	to    *os.File
	lines int
}

func (r *reporter) line(l guest.Line) error {
	d, err := json.Marshal(l)
	if err != nil {
		return err
	}
	r.lines++
	_, err = r.to.Write(append(d, '\n'))
	return err
}

func run() error {
	task, err := readTask()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(task.Results, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := raw(to); err != nil {
		return err
	}
	r := &reporter{to: to}
	done, err := work(task, r)
	if err != nil {
		err = r.line(guest.Line{Failed: err.Error()})
	} else {
		done.Lines = r.lines
		err = r.line(guest.Line{Done: done})
	}
	// The kernel sends the rest before the file is closed.
	return errors.Join(err, to.Close())
}

// begin mounts what attaching reads.
func begin() error {
	for _, m := range [][3]string{
		{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"devtmpfs", "/dev", "devtmpfs"}, {"tmpfs", "/tmp", "tmpfs"},
		{"tracefs", "/sys/kernel/tracing", "tracefs"}, {"debugfs", "/sys/kernel/debug", "debugfs"},
	} {
		if err := unix.Mount(m[0], m[1], m[2], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	// This makes detaching fifty times faster.
	for path, text := range map[string]string{"/proc/sys/debug/kprobes-optimization": "0", "/sys/kernel/rcu_expedited": "1"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err // arm64 does not optimise kprobes
		}
	}
	return nil
}

func readTask() (*guest.Task, error) {
	f, err := os.Open(guest.TaskPath)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	task := &guest.Task{}
	return task, gob.NewDecoder(f).Decode(task)
}

// raw makes a serial line transmit what is written unchanged.
func raw(f *os.File) error {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
}

func work(task *guest.Task, r *reporter) (*guest.Done, error) {
	img, err := dwarfloc.Open(guest.ImagePath, nil)
	if err != nil {
		return nil, err
	}
	kernel, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return nil, err
	}
	done := &guest.Done{Slide: kernel.Target().Slide, Multi: kernel.Target().KprobeMulti}
	if len(task.Plans) > 0 {
		if done.Lost, err = trace(task, img, kernel, r); err != nil {
			return nil, err
		}
	}
	return done, errors.Join(attach(task.Sites, img, kernel, r), commands(task, r))
}

// trace attaches the task's plans and reports what they fetch while a child makes the calls.
func trace(task *guest.Task, img *dwarfloc.Image, kernel *instances.Running, r *reporter) (lost uint64, err error) {
	plans := make([]*plan.Plan, len(task.Plans))
	number := make(map[*plan.Plan]int)
	for i := range task.Plans {
		if plans[i], err = task.Plans[i].Unpack(img, kernel.Target()); err != nil {
			return 0, err
		}
		number[plans[i]] = i
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	session, err := tracer.Open(ctx, kernel, plans, tracer.Options{Buffer: 4 << 20})
	if err != nil {
		return 0, err
	}
	for i, a := range session.Attachments {
		for _, x := range a.Refused {
			if err := r.line(guest.Line{Refused: refused(i, x.Site, x.Err)}); err != nil {
				return 0, err
			}
		}
	}
	cmd := exec.Command("/init", guest.Calls)
	cmd.Env = []string{"GOGC=off", "GODEBUG=asyncpreemptoff=1"}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var c guest.Child
	failed := make(chan error, 1)
	go func() {
		failed <- errors.Join(json.NewDecoder(out).Decode(&c), cmd.Wait())
		stop()
	}()
	err = session.Run(ctx, func(h *tracer.Hit) error {
		if h.PID != cmd.Process.Pid {
			return nil
		}
		hit := &guest.Hit{Plan: number[h.Plan], Site: h.Site, Task: h.TID, Err: h.Err}
		for _, v := range h.Values {
			hit.Data = append(hit.Data, v.Data)
		}
		return r.line(guest.Line{Hit: hit})
	})
	if err = errors.Join(err, <-failed); err != nil {
		return 0, err
	}
	if err := r.line(guest.Line{Child: &c}); err != nil {
		return 0, err
	}
	not, err := session.Unreported()
	return not.Lost, errors.Join(err, session.Close())
}

func refused(plan, site int, err error) *guest.Refused {
	out := &guest.Refused{Plan: plan, Site: site}
	if err != nil {
		out.Text = err.Error()
		var errno unix.Errno
		if errors.As(err, &errno) {
			out.Errno = uint(errno)
		}
	}
	return out
}
