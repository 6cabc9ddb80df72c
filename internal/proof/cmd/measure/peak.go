package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const interval = 500 * time.Microsecond

// measurePeak peak runs another command and prints the peak of its own memory in MB (10^6
// bytes).
//
//	peak COMMAND ARGUMENT...
//
// Its own memory is what the process would need without the file that it maps: anonymous
// pages (heap, stacks, private copies of file pages) and shared memory, RssAnon and RssShmem
// in /proc/PID/status (proc(5)). The kernel keeps a high-water mark only of all resident
// pages (VmHWM), which includes the touched pages of mapped files, so the status is read
// every half millisecond. For a process that grows and ends within that time the result is
// too low. Child processes are not counted.
func measurePeak() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: peak COMMAND ARGUMENT...")
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	peak, err := peakOf(cmd)
	if err != nil {
		log.Printf("%s: %v", os.Args[1], err)
	}
	fmt.Printf("%.1f\n", float64(peak)/1e6)
}

// peakOf runs a command, whose output is thrown away, and returns the peak of its own memory in bytes.
func peakOf(cmd *exec.Cmd) (peak uint64, err error) {
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-tick.C:
			peak = max(peak, own(cmd.Process.Pid))
		}
	}
}

// own returns the size of a process's own memory in bytes, or 0 if it has ended.
func own(pid int) uint64 {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	var sum uint64
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0
		}
		sum += n * 1024
	}
	return sum
}
