package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/pack"
)

// printSeries prints what packs of the kernels in a directory cost, with types and without.
func printSeries(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "vmlinux-*"))
	if err != nil {
		return err
	}
	number := func(path string) int { // 56 of vmlinux-6.1.0-56-cloud-amd64
		m := regexp.MustCompile(`-(\d+)-`).FindStringSubmatch(filepath.Base(path))
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	slices.SortFunc(paths, func(a, b string) int { return number(a) - number(b) })
	fmt.Print("\nA series of kernels: packs with types and without, in bytes.\n\n")
	fmt.Print("| image | pack | seconds | without types |\n| --- | ---: | ---: | ---: |\n")
	for _, path := range paths {
		var cells []string
		for i, o := range []pack.Options{{}, {NoTypes: true}} {
			now, seconds, err := packsWritten(path, o)
			if err != nil {
				return err
			}
			cells = append(cells, strconv.Itoa(len(now)))
			if i == 0 {
				cells = append(cells, fmt.Sprintf("%.1f", seconds))
			}
		}
		fmt.Printf("| %s | %s |\n", filepath.Base(path), strings.Join(cells, " | "))
	}
	return nil
}

// written writes a pack in memory.
func packsWritten(path string, o pack.Options) ([]byte, float64, error) {
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	var b bytes.Buffer
	if _, err := pack.Write(context.Background(), img, o, &b); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	return b.Bytes(), time.Since(start).Seconds(), img.Close()
}
