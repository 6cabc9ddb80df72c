package kernelhas

import (
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/arch"
)

// Arch returns the architecture of the running kernel, or nil if there is no table for it. A process for a
// machine of 32 bits may run in a kernel for one of 64.
var Arch = sync.OnceValue(func() *arch.Arch {
	var own *arch.Arch
	for _, a := range arch.All() {
		if a.GOARCH == runtime.GOARCH {
			own = a
		}
	}
	if own != nil && own.WordSize == 8 {
		return own
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return own
	}
	machine := unix.ByteSliceToString(u.Machine[:])
	for _, a := range arch.All() {
		if slices.Contains(a.Uname, machine) {
			return a
		}
	}
	return own
})
