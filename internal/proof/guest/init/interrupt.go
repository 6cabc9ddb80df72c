package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// interrupt runs a command that traces, works for some seconds when it has attached its probes, and
// interrupts it. It prints how long the command took to end, how many probes there still were, and
// how long they took.
func interrupt(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout = os.Stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	said := bufio.NewScanner(stderr)
	for said.Scan() {
		fmt.Fprintln(os.Stderr, said.Text())
		if strings.Contains(said.Text(), "attached at") {
			break
		}
	}
	attached := time.Since(start)
	if err := exec.Command("/init", guest.Workload, "5s").Run(); err != nil {
		return err
	}
	start = time.Now()
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		return err
	}
	for said.Scan() {
		fmt.Fprintln(os.Stderr, said.Text())
	}
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		return err
	}
	ended := cmd.Wait()
	prompt, probes := time.Since(start), 0
	for first := true; ; first = false {
		list, err := os.ReadFile("/sys/kernel/debug/kprobes/list")
		if err != nil {
			return err
		}
		n := strings.Count(string(list), "\n")
		if first {
			probes = n
		}
		if n == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, guest.Interrupted, attached.Milliseconds(), ended, prompt.Milliseconds(), probes, time.Since(start).Milliseconds())
	return nil
}
