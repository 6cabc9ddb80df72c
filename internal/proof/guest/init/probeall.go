package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

const (
	tracing = "/sys/kernel/tracing/"
	group   = "all"
)

// probeAll does a guest.Probing.
func probeAll(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var x prober
	if err := json.Unmarshal(text, &x.Probing); err != nil {
		return err
	}
	for _, m := range x.Modules {
		f, err := os.Open(m)
		if err != nil {
			return err
		}
		if err := errors.Join(unix.FinitModule(int(f.Fd()), "", 0), f.Close()); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", m, err)
		}
	}
	// What goes wrong is to end the guest, with what the kernel says on its console.
	for file, text := range map[string]string{"/proc/sys/kernel/panic_on_oops": "1", "/proc/sys/kernel/panic_on_warn": "1", tracing + "tracing_on": "0"} {
		if err := os.WriteFile(file, []byte(text), 0); err != nil {
			return err
		}
	}
	log, err := os.OpenFile("/dev/kmsg", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if x.Work == guest.Vectors {
		if err := makeArrays(); err != nil {
			return fmt.Errorf("make arrays of disks: %w", err)
		}
	}
	x.out.Refused = make(map[string]int)
	if x.out.Work, err = x.work1(); err != nil {
		return err
	}
	if again, err := x.work1(); err != nil || again != x.out.Work {
		return fmt.Errorf("two runs differ: %w\n%s\n%s", err, x.out.Work, again)
	}
	if err := x.all(); err != nil {
		return err
	}
	if x.out.Said, err = warnings(log); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(&x.out)
}

type prober struct {
	guest.Probing
	out guest.ProbedAll
}

// at is one probe.
type at struct {
	f      *guest.Function
	offset int
}

func (a at) String() string { return fmt.Sprintf("%s+%#x", a.f.Name, a.offset) }

func (x *prober) all() error {
	runs, err := x.run()
	if err != nil {
		return err
	}
	together := max(x.Together, 1)
	for part := range slices.Chunk(runs, together) {
		var list []at
		name := ""
		for _, f := range part {
			name += " " + f.Name
			for _, off := range f.Offsets {
				list = append(list, at{f, off})
			}
		}
		// Seen on the console if it is the last thing that happens.
		_ = os.WriteFile("/dev/kmsg", []byte("<6>probes:"+name), 0)
		if err := x.try(list, true); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// run returns the functions that the work runs.
func (x *prober) run() (out []*guest.Function, err error) {
	const some = 100
	for part := range slices.Chunk(x.Functions, some) {
		var list []at
		for i := range part {
			list = append(list, at{&part[i], part[i].Offsets[0]})
		}
		x.out.Tried += len(list)
		hits, err := attached(list, func(error) {}, func() error { _, err := x.work1(); return err })
		if err != nil {
			return nil, err
		}
		for i := range part {
			if hits[i] > 0 && len(out) < x.Want {
				out = append(out, &part[i])
			}
		}
		if len(out) == x.Want {
			break
		}
	}
	x.out.Ran = len(out)
	return out, nil
}

// try works with probes, and if that comes to something else, finds one that is the cause.
func (x *prober) try(list []at, count bool) error {
	got := ""
	hits, err := attached(list, func(err error) {
		if count {
			x.out.Refused[err.Error()]++
		}
	}, func() (err error) {
		got, err = x.work1()
		if err != nil {
			got = err.Error()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if count {
		x.out.Probes += len(list)
		for _, n := range hits {
			x.out.Hits += n
		}
	}
	const enough = 20
	if got == x.out.Work || len(x.out.Wrong) >= enough {
		return nil
	}
	if len(list) == 1 {
		x.out.Wrong = append(x.out.Wrong, list[0].String())
		x.out.How = cmp.Or(x.out.How, got)
		return nil
	}
	return errors.Join(x.try(list[:len(list)/2], false), x.try(list[len(list)/2:], false))
}

// attached calls work while there are probes, and returns their hits.
func attached(list []at, refused func(error), work func() error) (hits []uint64, err error) {
	events, err := os.OpenFile(tracing+"kprobe_events", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer events.Close()
	for i, a := range list {
		place := fmt.Sprintf("%s+%d", a.f.At, a.offset)
		if base, err := strconv.ParseUint(a.f.At, 0, 64); err == nil {
			place = fmt.Sprintf("%#x", base+uint64(a.offset))
		}
		if _, err := fmt.Fprintf(events, "p:%s/p%d %s\n", group, i, place); err != nil {
			var errno unix.Errno
			errors.As(err, &errno)
			refused(errno)
		}
	}
	enable := tracing + "events/" + group + "/enable"
	if _, err := os.Stat(enable); err != nil {
		return make([]uint64, len(list)), work() // all are refused
	}
	if err := os.WriteFile(enable, []byte("1"), 0); err != nil {
		return nil, err
	}
	err = work()
	profile, profileErr := os.ReadFile(tracing + "kprobe_profile")
	err = errors.Join(err, profileErr, os.WriteFile(enable, []byte("0"), 0), forget())
	hits = make([]uint64, len(list))
	for line := range strings.Lines(string(profile)) {
		w := strings.Fields(line)
		if len(w) != 3 {
			continue
		}
		i, nameErr := strconv.Atoi(strings.TrimPrefix(w[0], "p"))
		n, hitErr := strconv.ParseUint(w[1], 10, 64)
		if nameErr == nil && hitErr == nil && i < len(hits) {
			hits[i] = n
		}
	}
	return hits, err
}

// forget removes all probes.
func forget() error {
	f, err := os.OpenFile(tracing+"kprobe_events", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// work1 runs the work in a process of its own.
func (x *prober) work1() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "/init", x.Work)
	c.Env = []string{"GOGC=off"}
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// warnings returns the next lines of the kernel's log that are warnings, or worse, but for what it says of probes that it refuses.
func warnings(f *os.File) (out []string, err error) {
	fd, buf := int(f.Fd()), make([]byte, 8192)
	for {
		n, err := unix.Read(fd, buf)
		if err != nil {
			if errors.Is(err, unix.EAGAIN) {
				return out, nil
			}
			return out, err
		}
		head, text, _ := strings.Cut(string(buf[:n]), ";")
		priority, _, _ := strings.Cut(head, ",")
		const warning = 4
		if p, err := strconv.Atoi(priority); err == nil && p < 8 && p <= warning {
			line, _, _ := strings.Cut(text, "\n")
			if !strings.Contains(line, "Could not probe notrace function") && !strings.Contains(line, "clocksource:") && !strings.Contains(line, "hrtimer: interrupt took") { // an emulator's clock
				out = append(out, line)
			}
		}
	}
}

// steady works, and prints what came of it. Each line is one that a fault in the kernel's code would change.
func steady() error {
	dir, err := os.MkdirTemp("/tmp", "steady")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	say := func(what string, text any) { fmt.Printf("%s: %v\n", what, text) }
	big := bytes.Repeat([]byte("0123456789abcdefg"), 3001)
	for i := range 4 {
		name := fmt.Sprintf("%s/f%d", dir, i)
		if err := errors.Join(os.WriteFile(name, big[:i*9001], 0o640), os.Symlink(name, name+".l"), os.Link(name, name+".h"), os.Rename(name+".h", name+".r"), os.Mkdir(name+".d", 0o700)); err != nil {
			return err
		}
		d, err := os.ReadFile(name + ".l")
		if err != nil {
			return err
		}
		st, err := os.Stat(name + ".r")
		if err != nil {
			return err
		}
		say("file", fmt.Sprintf("%x %d %v", sha256.Sum256(d), st.Size(), st.Mode()))
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		say("entry", e)
	}
	for _, path := range []string{"/none", "/proc/none/x", dir + "/f1/x", "/sys/kernel/none"} {
		_, err := os.Stat(path)
		say("error", err != nil)
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for _, fd := range [][2]int{{p[1], p[0]}, {pair[0], pair[1]}, {pair[1], pair[0]}} {
		buf := make([]byte, 9000)
		n, err := unix.Write(fd[0], big[:8000])
		if err != nil {
			return err
		}
		m, err := unix.Read(fd[1], buf)
		say("through", fmt.Sprintf("%d %d %x %v", n, m, sha256.Sum256(buf), err))
	}
	ep, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	ev, err := unix.Eventfd(3, unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	events := make([]unix.EpollEvent, 4)
	err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, ev, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(ev)})
	n, waitErr := unix.EpollWait(ep, events, 100)
	say("epoll", fmt.Sprint(err, n, waitErr, events[0].Events))
	for range 3 {
		m, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		copy(m[12345:], big)
		say("memory", fmt.Sprintf("%x %v %v", sha256.Sum256(m), unix.Mprotect(m, unix.PROT_READ), unix.Munmap(m)))
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGUSR1)
	if err := unix.Kill(os.Getpid(), unix.SIGUSR1); err != nil {
		return err
	}
	say("signal", <-c)
	for _, status := range []string{"0", "3"} {
		say("child", exec.Command("/init", guest.Steady, status).Run())
	}
	for _, f := range []string{"/proc/self/limits", "/proc/filesystems", "/proc/version", "/proc/devices"} {
		d, err := os.ReadFile(f)
		say(f, fmt.Sprintf("%x %v", sha256.Sum256(d), err))
	}
	for _, name := range []string{"sha1", "sha256", "sha512", "crc32c", "md5", "hmac(sha512)"} {
		digest, err := kernelHash(name, big)
		say(name, fmt.Sprintf("%x %v", digest, err))
	}
	return nil
}

// kernelHash has the kernel compute a hash.
func kernelHash(name string, data []byte) ([]byte, error) {
	s, err := unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(s) }()
	if err := unix.Bind(s, &unix.SockaddrALG{Type: "hash", Name: name}); err != nil {
		return nil, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(s), 0, 0, 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	defer func() { _ = unix.Close(int(fd)) }()
	if _, err := unix.Write(int(fd), data); err != nil {
		return nil, err
	}
	out := make([]byte, 64)
	n, err := unix.Read(int(fd), out)
	return out[:max(n, 0)], err
}
