package insn_test

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// BenchmarkNext decodes the code of BENCH_VMLINUX, an amd64 kernel.
func BenchmarkNext(b *testing.B) {
	path := os.Getenv("BENCH_VMLINUX")
	if path == "" {
		b.Skip("BENCH_VMLINUX is not set")
	}
	f, err := elf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	code, err := f.Section(".text").Data()
	if err != nil {
		b.Fatal(err)
	}
	a := insn.For("amd64")
	b.SetBytes(int64(len(code)))
	for b.Loop() {
		for at := 0; at < len(code); {
			in, ok := a.Next(code[at:])
			if !ok {
				in.Size = 1
			}
			at += in.Size
		}
	}
}
