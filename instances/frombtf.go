package instances

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/elfnote"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
)

// btfDir is where the kernel shows its BTF, and that of modules.
const btfDir = "/sys/kernel/btf"

// KernelFromBTF makes an image of what the running kernel says about itself, without any file of debug information: see
// dwarfloc.FromBTF. module is the kernel's name for a module, or "" for the kernel. Where /proc/kallsyms shows no
// addresses, which needs root or CAP_SYSLOG, and kernel.kptr_restrict of 0 or 1, that is an error.
//
// The error wraps fs.ErrNotExist if the kernel was built without BTF (CONFIG_DEBUG_INFO_BTF), or the module is not
// loaded.
func KernelFromBTF(module string) (*dwarfloc.Image, error) {
	o := dwarfloc.BTFOptions{Path: filepath.Join(btfDir, "vmlinux"), Arch: kernelhas.Arch(), Module: module}
	var err error
	if o.BTF, err = os.ReadFile(o.Path); err != nil {
		return nil, fmt.Errorf("the kernel's own types: %w", err)
	}
	if module != "" {
		o.Base, o.Path = o.BTF, filepath.Join(btfDir, module)
		if o.BTF, err = os.ReadFile(o.Path); err != nil {
			return nil, fmt.Errorf("the types of module %s: %w", module, err)
		}
	}
	if o.BuildID, err = KernelBuildID(); err != nil {
		return nil, err
	}
	symbols, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, err
	}
	defer symbols.Close()
	o.Symbols = symbols
	return dwarfloc.FromBTF(o)
}

// KernelTypes returns the running kernel's types, for dwarfloc.Options.KernelTypes.
func KernelTypes() ([]byte, error) { return os.ReadFile(filepath.Join(btfDir, "vmlinux")) }

// KernelBuildID returns the build ID of the running kernel in hexadecimal digits: by it the pack of a kernel is found.
func KernelBuildID() (string, error) {
	notes, err := os.ReadFile(kernelNotes)
	if err != nil {
		return "", fmt.Errorf("the running build ID: %w", err)
	}
	id := elfnote.BuildID(notes, binary.NativeEndian)
	if id == "" {
		return "", fmt.Errorf("%s: no build ID", kernelNotes)
	}
	return id, nil
}
