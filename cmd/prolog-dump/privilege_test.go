package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// nobody is a user without a home, and without privileges.
const nobody = 65534

// stage is a directory that everybody can read, with the tool and a program to trace, and one that
// nobody can write to, for temporary files.
type stage struct{ tool, program, temporary string }

func newStage(t *testing.T) *stage {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "only root can run the tool as another user")
	}
	dir, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &stage{filepath.Join(dir, "prolog-dump"), "", filepath.Join(dir, "tmp")}
	if s.program, err = fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe"); err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/exe") // TestMain makes it the tool if it has the tool's name
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(s.tool, own, 0o755), os.Chmod(s.program, 0o755), os.Mkdir(s.temporary, 0o755), os.Chown(s.temporary, nobody, nobody), os.Chmod(dir, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run returns a command that runs the tool as nobody, with some capabilities.
func (s *stage) run(capabilities []uintptr, args ...string) *exec.Cmd {
	cmd := exec.Command(s.tool, args...)
	cmd.Dir, cmd.Env = "/", []string{"HOME=/nonexistent", "TMPDIR=" + s.temporary, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: capabilities}
	return cmd
}

// clean checks that nothing is left behind: no temporary file, and none of some programs in the kernel.
func (s *stage) clean(t *testing.T, when string, programs ...ebpf.ProgramID) {
	t.Helper()
	left, err := os.ReadDir(s.temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("%s: temporary files %v, %v", when, left, err)
	}
	for end := time.Now().Add(20 * time.Second); len(programs) > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		programs = slices.DeleteFunc(programs, func(id ebpf.ProgramID) bool {
			p, err := ebpf.NewProgramFromID(id)
			if err != nil {
				return errors.Is(err, os.ErrNotExist)
			}
			_ = p.Close()
			return false
		})
	}
	if len(programs) > 0 {
		t.Errorf("%s: the kernel has still the programs %v", when, programs)
	}
}

// programsOf lists the programs in the kernel that a process has loaded.
func programsOf(t *testing.T, pid int) (out []ebpf.ProgramID) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, _ := os.ReadFile(f) // it may be closed by now
		for line := range strings.Lines(string(text)) {
			var id ebpf.ProgramID
			if n, _ := fmt.Sscanf(line, "prog_id: %d", &id); n == 1 {
				out = append(out, id)
			}
		}
	}
	return out
}

// TestNobody: what reads needs no privilege, and says nothing about what it has not: not even a home.
func TestNobody(t *testing.T) {
	s := newStage(t)
	for _, args := range [][]string{
		{"mix key"}, {"--explain", "mix key"}, {"--cost", "mix key"}, {"--format", "json", "mix key"}, {"--format", "tracefs", "mix key"},
		{"--format", "bpftrace", "mix key"}, {"--format", "c", "mix key"}, {"--format", "go", "mix key"}, {"lines", "mix"}, {"vars", "mix"},
		{"funcs", "m*"}, {"header", "mix key"}, {"coverage", s.program}, {"demo"}, {"cache", "list"}, {"--help"},
	} {
		var out, errs bytes.Buffer
		if !slices.Contains([]string{"coverage", "demo", "cache"}, args[0]) { // these have no flag for an image
			args = append([]string{"-x", s.program}, args...)
		}
		cmd := s.run(nil, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || errs.Len() > 0 || out.Len() == 0 && args[0] != "cache" {
			t.Errorf("%v: %v, %d bytes, %q", args, err, out.Len(), errs.String())
		}
	}
	// What is wrong with a definition is said before anything needs a privilege.
	out, err := s.run(nil, "-x", s.program, "trace", "mix nope").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `no variable "nope" in mix`) {
		t.Errorf("trace of a wrong definition: %v, %s", err, out)
	}
	s.clean(t, "after reading")
}

// TestCapabilities: CAP_BPF and CAP_PERFMON are enough to trace a program. Without one of them the error
// names it.
func TestCapabilities(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	s := newStage(t)
	const bpf, perfmon = unix.CAP_BPF, unix.CAP_PERFMON
	for _, c := range []struct {
		capabilities []uintptr
		command      string
		wrong        string
	}{
		{[]uintptr{bpf, perfmon}, "trace", ""},
		{[]uintptr{bpf, perfmon}, "trace --span", ""},
		{[]uintptr{bpf, perfmon}, "verify", ""},
		{[]uintptr{bpf}, "trace", "operation not permitted: probes need root, or CAP_PERFMON and CAP_BPF: this process lacks CAP_PERFMON, for programs that trace and for their probes"},
		{[]uintptr{perfmon}, "trace", "make the ring buffer: creating map: map create: operation not permitted: probes need root, or CAP_PERFMON and CAP_BPF: this process lacks CAP_BPF, for maps and programs"},
		{nil, "trace", "this process has neither"},
		{nil, "verify", "operation not permitted: this process has neither"},
		{[]uintptr{perfmon}, "verify", "operation not permitted: this process lacks CAP_BPF, for maps and programs"},
	} {
		command := strings.Fields(c.command)
		args := append(append([]string{"-x", s.program}, command...), "mix key")
		if command[0] == "trace" {
			args = append(args, "--", s.program)
		}
		cmd := s.run(c.capabilities, args...)
		cmd.Stdin = strings.NewReader("x\n")
		out, err := cmd.CombinedOutput()
		switch text := string(out); {
		case c.wrong != "":
			if err == nil || !strings.Contains(text, c.wrong) || strings.Contains(text, "MEMLOCK") {
				t.Errorf("%s with %v: %v, %s\nwant ... %s", c.command, c.capabilities, err, text, c.wrong)
			}
		case err != nil, command[0] == "trace" && !strings.Contains(text, "key=41"):
			t.Errorf("%s with %v: %v, %s", c.command, c.capabilities, err, text)
		}
	}
	s.clean(t, "with capabilities")
}

// TestForbidden: if a process has all privileges and still may not, the error says what can be the cause.
func TestForbidden(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	s := newStage(t)
	cmd := exec.Command(s.tool, "--no-cache", "-x", s.program, "trace", "mix key")
	cmd.Args[0] = withoutBPF
	cmd.Env = []string{"HOME=/nonexistent"}
	out, err := cmd.CombinedOutput()
	want := "this process has them, so something else forbids it: a user namespace, a seccomp filter, a security module, or lockdown of the kernel"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, %s, want ... %s", err, out, want)
	}
}

// withoutBPF is the name under which the test binary is the tool with a filter that lets it not call bpf(2).
const withoutBPF = "prolog-dump-without-bpf"

func runWithoutBPF() {
	const load, equal, ret, number = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K, 0
	filter := []unix.SockFilter{
		{Code: load, K: number}, // of struct seccomp_data
		{Code: equal, K: unix.SYS_BPF, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); err != 0 {
		fmt.Fprintln(os.Stderr, "seccomp:", err)
		os.Exit(2)
	}
	os.Exit(run(os.Args[1:]))
}

// TestSignals: the first SIGINT or SIGTERM ends trace with its summary, the second at once, and SIGKILL
// leaves nothing behind either.
func TestSignals(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	s := newStage(t)
	for _, c := range []struct {
		name    string
		signals []syscall.Signal
		summary bool
	}{
		{"SIGINT", []syscall.Signal{syscall.SIGINT}, true},
		{"SIGTERM", []syscall.Signal{syscall.SIGTERM}, true},
		{"SIGINT twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, false},
		{"SIGKILL", []syscall.Signal{syscall.SIGKILL}, false},
	} {
		cmd := exec.Command(s.tool, "-x", s.program, "trace", "m* $params")
		cache := filepath.Join(t.TempDir(), "cache")
		cmd.Env = []string{"BPFPROLOGUE_CACHE=" + cache, "TMPDIR=" + s.temporary}
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(errs)
		line, err := lines.ReadString('\n')
		programs := programsOf(t, cmd.Process.Pid)
		if err != nil || !strings.Contains(line, "attached at") || len(programs) == 0 {
			t.Errorf("%s: it says %q, %v, and has the programs %v", c.name, line, err, programs)
		}
		begin := time.Now()
		for _, signal := range c.signals {
			_ = cmd.Process.Signal(signal) // it may have ended
		}
		rest, err := io.ReadAll(lines)
		if err != nil {
			t.Fatal(err)
		}
		status := cmd.Wait()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: it ended after %v", c.name, took)
		}
		if c.summary && (status != nil || !strings.Contains(string(rest), "0 hits, 0 lost\nno hit: no process that ran or loaded ")) {
			t.Errorf("%s: %v, %s", c.name, status, rest)
		}
		s.clean(t, c.name, programs...)
		kept, err := filepath.Glob(filepath.Join(cache, "*"))
		if err != nil || slices.ContainsFunc(kept, func(name string) bool { return !strings.HasSuffix(name, ".idx") }) {
			t.Errorf("%s: the cache has %v, %v", c.name, kept, err)
		}
	}
}

// TestSecondSignal: in the middle of work the second Ctrl-C ends the tool at once. Two that wait to be
// delivered are one to a process, so on a busy machine it takes more of them.
func TestSecondSignal(t *testing.T) {
	image := testenv.Vmlinux(t)
	s := newStage(t)
	cmd := exec.Command(s.tool, "--no-cache", "coverage", image)
	cmd.Env = []string{"TMPDIR=" + s.temporary}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	begin := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case err := <-ended:
			if took := time.Since(begin); err == nil || took > 2*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			s.clean(t, "in the middle of work")
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
