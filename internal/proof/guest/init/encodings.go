package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/proof/harm"
)

// encodings runs instructions, known ones and some that a seed chooses.
func encodings(count, seed string) error {
	n, err := strconv.Atoi(count)
	s, seedErr := strconv.ParseUint(seed, 10, 64)
	if err := errors.Join(err, seedErr); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/tmp", "encodings")
	if err != nil {
		return err
	}
	const most = 1 << 16 // each probe is two files
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	r, err := harm.New(guest.Runner, dir, true)
	if err != nil {
		return err
	}
	defer r.Close()
	codes := harm.Codes(runtime.GOARCH, n, s)
	if runtime.GOARCH == "amd64" {
		codes = slices.DeleteFunc(codes, guest.EndsEmulator)
	}
	all, err := r.Run(context.Background(), codes, nil)
	if err != nil {
		return err
	}
	var out guest.EncodingsRun
	for i := range all {
		o := &all[i]
		out.Run++
		if o.Differs() {
			out.Differ++
		}
		if o.Hits > 0 {
			out.Hit++
		}
		// Kernels refuse some that processors do not have and the emulator runs.
		if v := o.Verdict(); v != harm.Agrees && v != harm.Overrefused && v != harm.Unforeseen {
			out.Wrong = append(out.Wrong, fmt.Sprintf("% x: %s: %s (%d hits, signal %d)", o.Code, v, o.What(), o.Hits, o.Without.Signal))
		}
	}
	return json.NewEncoder(os.Stdout).Encode(&out)
}
