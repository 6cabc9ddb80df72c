package plan

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// Target is where a plan runs: what its programs, their loading and their attaching
// depend on besides the image. The zero Target is right for every image whose addresses
// need not move.
type Target struct {
	// Slide is added, modulo 2^64, to all addresses of the image that prologues hold: a
	// kernel's KASLR offset in bytes. Prologues for position-independent programs and
	// libraries hold none: they compute the load bias of the process that hits.
	Slide uint64
	// Kernel is the architecture of the kernel that runs the programs, if it is not the image's own: an
	// amd64 kernel runs programs for i386 too, and their registers are in its struct pt_regs.
	Kernel *arch.Arch
	// Reads is how memory is read. prologue.ReadAuto means prologue.ReadKernel for
	// a kernel or a kernel module, and prologue.ReadUser for any other image.
	Reads prologue.Reads
	// SignExtends is set if the kernel has instructions that extend signs: see
	// prologue.Options.
	SignExtends bool
	// KprobeMulti and UprobeMulti say which links for many sites the kernel has, by default
	// none: each site then has its own link, as on all kernels. A program is loaded for one
	// kind of link, so sites that are attached in different ways never share an instance.
	//
	// KprobeMulti is kprobe.multi (Linux 5.18 with CONFIG_FPROBE): entries and returns of
	// kernel functions. ftrace calls the program there, and saves the registers that hold
	// arguments and results. Other sites have links of their own.
	//
	// UprobeMulti is uprobe.multi (Linux 6.6): all sites of a program or library.
	KprobeMulti, UprobeMulti bool
}

// of returns the target for an image, with Reads decided. kernel is set if the image is a
// kernel or a kernel module.
func (t Target) of(kernel bool) (Target, error) {
	if t.KprobeMulti && t.UprobeMulti {
		return t, errors.New("a target has kprobes or uprobes, not both: Target.KprobeMulti and Target.UprobeMulti are set")
	}
	switch {
	case t.Reads != prologue.ReadAuto:
	case kernel:
		t.Reads = prologue.ReadKernel
	default:
		t.Reads = prologue.ReadUser
	}
	return t, nil
}

// UserSpace reports whether programs read memory of processes: they are for uprobes.
func (t Target) UserSpace() bool {
	return t.Reads == prologue.ReadUser || t.Reads == prologue.ReadSleep
}

// inKernel reports whether programs read kernel memory, and nothing else.
func (t Target) inKernel() bool {
	return t.Reads == prologue.ReadKernel || t.Reads == prologue.ReadCast
}
