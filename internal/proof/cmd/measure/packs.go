package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/pack"
)

// kernels are files below BENCH_CACHE.
var packsKernels = []string{
	"vmlinux-6.1.0-56-amd64", "vmlinux-6.1.0-56-cloud-amd64", "bookworm-backports/vmlinux-6.12.95+deb12-cloud-amd64",
	"arm64/vmlinux-6.1.0-56-cloud-arm64", "ext4-6.1.0-56-amd64.ko", "tun-6.1.0-56-cloud-amd64.ko",
}

// cost is what one pack costs.
type cost struct {
	*pack.Summary
	Path    string  `json:"path"`
	Seconds float64 `json:"seconds"`
	peak    int64   // bytes
}

// measurePacks packs prints what packs of images cost: bytes a site by part, and seconds. BENCH_CACHE names a directory with
// Debian's kernels; arguments name other files. -series names a directory with kernels of one series, of which the second
// table is.
//
//	go run ./internal/proof/cmd/measure packs -series bench/.cache/series > bench/PACKS.md
func measurePacks() {
	var err error
	if one := os.Getenv("PACKS_ONE"); one != "" {
		err = measure(one)
	} else {
		series := flag.String("series", "", "directory with kernels of one series")
		flag.Parse()
		if err = packsRun(flag.Args()); err == nil && *series != "" {
			err = printSeries(*series)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure writes one pack and prints what it costs, as JSON.
func measure(path string) error {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return err
	}
	start := time.Now()
	var b bytes.Buffer
	c := cost{Path: path}
	if c.Summary, err = pack.Write(context.Background(), img, pack.Options{}, &b); err != nil {
		return err
	}
	c.Seconds = time.Since(start).Seconds()
	return json.NewEncoder(os.Stdout).Encode(&c)
}

func packsRun(paths []string) error {
	if len(paths) == 0 {
		dir := os.Getenv("BENCH_CACHE")
		if dir == "" {
			return errors.New("BENCH_CACHE names no directory with kernels, and no file is named")
		}
		for _, k := range packsKernels {
			paths = append(paths, filepath.Join(dir, k))
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var all []cost
	for _, p := range paths {
		cmd := exec.Command(self, "packs")
		cmd.Env = append(os.Environ(), "PACKS_ONE="+p)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		c := cost{}
		if err := json.Unmarshal(out, &c); err != nil {
			return err
		}
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			c.peak = u.Maxrss << 10
		}
		all = append(all, c)
	}
	printTable(all)
	return nil
}

func printTable(all []cost) {
	fmt.Print("# What packs cost\n\nPrinted by `go run ./internal/proof/cmd/measure packs`. Seconds and memory are those of writing, on a machine that did other things too.\n\n")
	fmt.Print("| image | sites | values | file | of it types | the rest, bytes a site | seconds | peak MB |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range all {
		fmt.Printf("| %s | %d | %d | %d | %d | %.2f | %.1f | %d |\n", filepath.Base(c.Path), c.Sites, c.Values, c.File, c.Types,
			float64(c.File-c.Types)/float64(max(c.Sites, 1)), c.Seconds, c.peak>>20)
	}
	c := all[0]
	fmt.Printf("\nBytes a site by part, of %s: as parts are, and as they are stored.\n\n| part | bytes | a site | stored | a site |\n| --- | ---: | ---: | ---: | ---: |\n", filepath.Base(c.Path))
	per := func(n int) string { return strings.TrimSpace(fmt.Sprintf("%.2f", float64(n)/float64(max(c.Sites, 1)))) }
	rest, bytes, stored := c.File-c.Types, 0, 0
	for _, p := range c.Parts {
		fmt.Printf("| %s | %d | %s | %d | %s |\n", p.Name, p.Bytes, per(p.Bytes), p.Stored, per(p.Stored))
		rest -= p.Stored
		bytes += p.Bytes
		stored += p.Stored
	}
	fmt.Printf("| headers of the file | %d | %s | %d | %s |\n| together | %d | %s | %d | %s |\n", rest, per(rest), rest, per(rest), bytes+rest, per(bytes+rest), stored+rest, per(stored+rest))
}
