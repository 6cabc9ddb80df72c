package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

const expedited = "/sys/kernel/rcu_expedited"

// kill starts a command so many times, which makes kprobes and ends them, and kills it at any moment; then it starts it to its end, and
// looks whether the kernel's settings are what they were before.
func kill(args []string) error {
	rounds, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	command := args[1:]
	usual := map[string]string{expedited: "0", optimization: "1"}
	for path, text := range usual {
		if err := os.WriteFile(path, []byte(text), 0); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/run", 0o755); err != nil {
		return err
	}
	run := func() (time.Duration, error) {
		start := time.Now()
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return time.Since(start), err
	}
	if _, err := run(); err != nil { // the first takes longer than those after it
		return err
	}
	usually, err := run()
	if err != nil {
		return err
	}
	out := guest.Killed{Rounds: rounds, Usually: usually}
	for range rounds {
		c := exec.Command(command[0], command[1:]...)
		if err := c.Start(); err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(int64(usually))))
		err := c.Process.Kill()
		if err := c.Wait(); err == nil {
			out.Ended++
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		for path, text := range usual {
			if is, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(is)) != text {
				out.Left++
				break
			}
		}
		if _, err := run(); err != nil {
			return err
		}
		for path, text := range usual {
			is, err := os.ReadFile(path)
			if err != nil || strings.TrimSpace(string(is)) != text {
				out.Wrong = append(out.Wrong, fmt.Sprintf("%s is %q, %v", path, is, err))
			}
		}
		if notes, _ := os.ReadDir("/run"); len(notes) > 0 {
			out.Wrong = append(out.Wrong, notes[0].Name()+" is left")
		}
	}
	if err := unix.Access("/sys/kernel/debug/kprobes/list", unix.R_OK); err == nil {
		list, err := os.ReadFile("/sys/kernel/debug/kprobes/list")
		if err != nil {
			return err
		}
		out.Probes = strings.Count(string(list), "\n")
	}
	return json.NewEncoder(os.Stdout).Encode(&out)
}
