package insn

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/symbolic"
)

// benchmark asks a question of each instruction in the code of BENCH_VMLINUX, a kernel of BENCH_ARCH or amd64.
func benchmark(b *testing.B, ask func(a *Arch, code []byte)) {
	path, arch := os.Getenv("BENCH_VMLINUX"), os.Getenv("BENCH_ARCH")
	if path == "" {
		b.Skip("BENCH_VMLINUX is not set")
	}
	if arch == "" {
		arch = "amd64"
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
	a := For(arch)
	b.SetBytes(int64(len(code)))
	b.ReportAllocs()
	for b.Loop() {
		for at := 0; at < len(code); {
			in, ok := a.Next(code[at:])
			if !ok {
				at += a.Stride()
				continue
			}
			if ask != nil {
				ask(a, code[at:at+in.Size])
			}
			at += in.Size
		}
	}
}

func BenchmarkNext(b *testing.B) { benchmark(b, nil) }

// BenchmarkAccesses also asks which registers are read and written.
func BenchmarkAccesses(b *testing.B) {
	benchmark(b, func(a *Arch, code []byte) { a.Accesses(code) })
}

func BenchmarkWrites(b *testing.B) { benchmark(b, func(a *Arch, code []byte) { a.Writes(code) }) }

func BenchmarkShape(b *testing.B) { benchmark(b, func(a *Arch, code []byte) { a.Shape(code) }) }

func BenchmarkSlot(b *testing.B) {
	benchmark(b, func(a *Arch, code []byte) { a.Slots.next(code, Slot{a.Slots.Frame, -16, 8}) })
}

// BenchmarkState follows all of the code as one path of 16 instructions after the other.
func BenchmarkState(b *testing.B) {
	n := 0
	var s *symbolic.State
	benchmark(b, func(a *Arch, code []byte) {
		if n++; n%16 == 1 {
			s = a.State()
		}
		s.Step(code, 0x1000)
	})
}
