package kernelhas

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// version skips a test if BPF programs cannot be loaded, and returns the kernel's version.
func version(t *testing.T) uint32 {
	t.Helper()
	if unix.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		t.Skip(err)
	}
	v, err := features.LinuxVersionCode()
	if err != nil {
		t.Skip(err)
	}
	return v
}

// TestVersions: what the kernel has is what kernels of its version have.
func TestVersions(t *testing.T) {
	v := version(t)
	if want := v >= 6<<16|17<<8; Casts() != want {
		t.Errorf("casts: %v, on Linux %d.%d", !want, v>>16, v>>8&0xff)
	}
	if want := v >= 6<<16|6<<8; SignExtends() != want {
		t.Errorf("sign extension: %v, on Linux %d.%d", !want, v>>16, v>>8&0xff)
	}
}

// TestResolve: only the calls that refer to the function are changed.
func TestResolve(t *testing.T) {
	version(t)
	other := call().WithReference("bpf_other")
	insns := asm.Instructions{call(), other, asm.Mov.Imm(asm.R0, 0), call()}
	err := Resolve(insns)
	if err != nil && !errors.Is(err, ErrNoCast) {
		t.Fatal(err)
	}
	known := insns[0].Constant > 0
	if known == (err != nil) || insns[1].Constant != 0 || insns[2].Constant != 0 || insns[3].Constant != insns[0].Constant {
		t.Errorf("%v: %v", err, insns)
	}
	if err := Resolve(asm.Instructions{other}); err != nil {
		t.Error(err)
	}
}
