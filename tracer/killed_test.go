package tracer_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// ownerEnv makes the test binary a process that attaches probes to the program it
// names, prints the IDs of their programs, and waits.
const ownerEnv = "TRACER_TEST_OWNER"

func TestMain(m *testing.M) {
	if path := os.Getenv(ownerEnv); path != "" {
		fmt.Println(own(path))
		select {}
	}
	os.Exit(m.Run())
}

// poorEnv makes that process give up its privileges first.
const poorEnv = "TRACER_TEST_POOR"

// own attaches probes and returns the IDs of all programs called trace_N, or an error.
func own(path string) string {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return err.Error()
	}
	running, err := instances.Find(img, instances.FindOptions{})
	if err != nil {
		return err.Error()
	}
	if os.Getenv(poorEnv) != "" {
		if err := syscall.Setuid(65534); err != nil {
			return err.Error()
		}
	}
	p, err := plansOf(img, plan.Options{Target: running.Target()}, "mix key", "twice v")
	if err != nil {
		return err.Error()
	}
	if _, err := tracer.Open(context.Background(), running, p, tracer.Options{}); err != nil {
		return err.Error()
	}
	return strings.Join(tracing(), " ")
}

// tracing lists the IDs of the kernel's programs that a Session loads.
func tracing() []string {
	var out []string
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil && strings.HasPrefix(info.Name, "trace_") {
			out = append(out, strconv.Itoa(int(id)))
		}
		_ = p.Close()
	}
	return out
}

// startOwner starts the process that own is for, and returns the line that it prints.
func startOwner(t *testing.T, env ...string) (owner *exec.Cmd, line string) {
	t.Helper()
	bpfexec.RequireOrSkip(t)
	path, _ := program(t)
	owner = exec.Command("/proc/self/exe")
	owner.Env = append(append(os.Environ(), env...), ownerEnv+"="+path)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = owner.Process.Kill()
		_ = owner.Wait() // killed
	})
	if line, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return owner, line
}

// TestPrivilege: without privileges the error says which are needed.
func TestPrivilege(t *testing.T) {
	_, line := startOwner(t, poorEnv+"=yes")
	if want := "operation not permitted: probes need root, or CAP_PERFMON and CAP_BPF: this process has neither\n"; !strings.HasSuffix(line, want) {
		t.Errorf("%q, want ... %q", line, want)
	}
}

// TestKilled: probes end with their owner, also when it is killed without a chance to
// detach them.
func TestKilled(t *testing.T) {
	owner, line := startOwner(t)
	ids := strings.Fields(line)
	if len(ids) == 0 {
		t.Fatalf("the owner says %q", line)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // killed
	left := ids
	for end := time.Now().Add(20 * time.Second); len(left) > 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = nil
		now := tracing()
		for _, id := range ids {
			for _, n := range now {
				if n == id {
					left = append(left, id)
				}
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("programs %v are still there", left)
	}
}
