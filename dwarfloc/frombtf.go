package dwarfloc

import (
	"errors"
	"io"
	"os"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/answers"
	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// BTFOptions says what is known of a kernel or a module apart from its debug information.
type BTFOptions struct {
	// Path is what errors call it, and the source of BTF: /sys/kernel/btf/vmlinux.
	Path string
	// BTF is the contents of that file, or of a section .BTF. It must not change while the image is in use.
	BTF []byte
	// Base is that of the kernel, if BTF is a module's.
	Base []byte
	// Arch is the architecture.
	Arch *arch.Arch
	// Symbols, if not nil, has the symbols of the running kernel, as /proc/kallsyms: their addresses become the
	// link-time addresses of the image, so that the kernel has no KASLR offset. Without them functions have no address, and
	// nothing is known of clones.
	Symbols io.Reader
	// Module is the kernel's name for the module that BTF is of, or "" for the kernel itself.
	Module string
	// BuildID is that of the kernel, also for a module, in hexadecimal digits, or "".
	BuildID string
}

// FromBTF makes an image of what the BTF of a kernel says. Its sites are entries of functions, without any inlined
// instance: runs of inlined bodies are not seen. Arguments are where the calling convention says (rule.ABIBTF), for
// functions that the compiler may have changed there are reasons. The error wraps ErrDamaged if the BTF is
// damaged.
func FromBTF(o BTFOptions) (*Image, error) {
	t, f, err := answers.NewBTF((*answers.BTFInput)(&o))
	if err != nil {
		return nil, err
	}
	return newAnswered(f, t), nil
}

// newAnswered returns the image of a file about which a source answers.
func newAnswered(f *image.File, source answers.Source) *Image {
	img := &Image{file: f}
	img.by = answered{img, source}
	return img
}

// OpenBTF is FromBTF for a file: one like /sys/kernel/btf/vmlinux, for an architecture, or an ELF file with a
// section .BTF, whose symbols and architecture count.
func OpenBTF(path string, a *arch.Arch) (*Image, error) {
	// That of the running kernel cannot be mapped as images are: not at all before Linux 6.16, and not shared since
	// (btf_sysfs_vmlinux_mmap in kernel/bpf/sysfs_btf.c).
	alone, err := isBTF(path)
	if err != nil {
		return nil, err
	}
	if alone {
		d, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return FromBTF(BTFOptions{Path: path, BTF: d, Arch: a})
	}
	f, err := image.Open(path, nil)
	if err != nil {
		return nil, err
	}
	t, err := answers.OpenBTF(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newAnswered(f, t), nil
}

// isBTF reports whether a file begins as BTF does.
func isBTF(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	d := make([]byte, 2)
	_, err = io.ReadFull(f, d)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // image.Open says more of it
	}
	return btf.Begins(d), errors.Join(err, f.Close())
}
