package mutate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// askObject expands the definitions of a BPF object, as "trace --object" does, with and without
// dispatch. Nothing is loaded: what a changed program would do in a kernel is not this module's.
func askObject(ctx context.Context, data []byte) answer {
	a := &asker{out: sha256.New(), limit: limitFor(len(data))}
	var damaged string
	for _, dispatch := range []bool{false, true} {
		a.question("object", func() {
			spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
			if a.failed("load", err) {
				damaged = err.Error()
				return
			}
			var images []*dwarfloc.Image
			defer func() {
				for _, img := range images {
					a.failed("close", img.Close())
				}
			}()
			expanded, err := instances.Expand(ctx, spec, func(d *probe.Definition) (instances.Subject, error) {
				name := "basic-gcc12-O2-dwarf5.elf"
				if d.Point.Function == "mix" {
					name = "run-gcc12-O2-dwarf5.exe"
				}
				image, err := fixtures.Bytes(name)
				if err != nil {
					return instances.Subject{}, err
				}
				img, err := dwarfloc.FromBytes(name, image, nil)
				if err == nil {
					images = append(images, img)
				}
				return instances.Subject{Image: img, Dispatch: dispatch}, err
			})
			if a.failed("expand", err) {
				damaged = err.Error()
				return
			}
			names := make([]string, 0, len(expanded.Programs))
			for n := range expanded.Programs {
				names = append(names, n)
			}
			slices.Sort(names)
			for _, n := range names {
				a.say("%q %v", n, expanded.Programs[n].Instructions)
			}
		})
	}
	return answer{Digest: hex.EncodeToString(a.out.Sum(nil)), Err: damaged, Faults: a.faults}
}
