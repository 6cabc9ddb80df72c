// Package needed says by a program's dynamic section what runs together with it.
package needed

import (
	"bytes"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// librariesOfC are the beginnings of the names of the C library's own libraries.
var librariesOfC = []string{"libc.so", "libc.musl", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so", "libcrypt.so", "libutil.so", "ld-linux", "ld-musl", "ld.so", "ld64.so", "linux-vdso"}

// unwinding has functions whose caller may see frames of the program unwound, or load a library that does it.
var unwinding = []string{"pthread_exit", "pthread_cancel", "thrd_exit", "dlopen", "dlmopen", "_Unwind_RaiseException", "_Unwind_ForcedUnwind", "__cxa_throw"}

// switching has functions by which a task goes on on another stack. The kernel tells which return addresses are still in use by
// comparing stack pointers, and expects returns in the order of the calls (arch_uretprobe_is_alive, handle_trampoline): with two stacks
// a return then leads to the wrong place, or to SIGILL.
var switching = []string{"makecontext", "swapcontext", "setcontext", "sigaltstack"}

// jumping has functions that leave frames without a return.
var jumping = []string{"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"}

// Leaves reports whether runs of a program's functions may end without a return: by an exception, the end of a thread, or longjmp.
func Leaves(f *image.File) bool {
	if !OnlyC(f) {
		return true
	}
	for _, s := range f.Sections() {
		if s.Name != ".dynstr" {
			continue
		}
		strs, err := f.Bytes(s.Addr, s.Size)
		if err != nil {
			return true
		}
		for _, name := range jumping {
			if bytes.Contains(strs, []byte("\x00"+name+"\x00")) {
				return true
			}
		}
	}
	return false
}

// OnlyC reports whether a program has one stack for each thread, and nothing unwinds it: it is an executable, with an interpreter, that
// needs no library but those of C, has no tables for exceptions of its own, and names no function that unwinds or changes stacks. false
// if that cannot be known.
func OnlyC(f *image.File) bool {
	var dynamic, strs []byte
	var interpreted bool
	for _, s := range f.Sections() {
		switch s.Name {
		case ".interp":
			interpreted = true
		case ".gcc_except_table":
			return false
		case ".dynamic":
			dynamic, _ = f.Bytes(s.Addr, s.Size)
		case ".dynstr":
			strs, _ = f.Bytes(s.Addr, s.Size)
		}
	}
	if !interpreted || len(dynamic) == 0 || len(strs) == 0 {
		return false
	}
	for _, name := range slices.Concat(unwinding, switching) {
		if bytes.Contains(strs, []byte("\x00"+name+"\x00")) {
			return false
		}
	}
	word := f.Arch().WordSize
	r := bin.Reader{D: dynamic, BigEndian: f.BigEndian()}
	next := func() uint64 {
		if word == 4 {
			return uint64(r.U32())
		}
		return r.U64()
	}
	for len(r.D)-r.P >= 2*word {
		const end, library, own = 0, 1, 14 // DT_NULL, DT_NEEDED, DT_SONAME: System V ABI, figure 5-10
		switch tag, value := next(), next(); {
		case tag == end:
			return true
		case tag == library && !ofC(strs, value), tag == own: // a library that can be run calls back what it does not know
			return false
		}
	}
	return false
}

func ofC(strs []byte, at uint64) bool {
	if at >= uint64(len(strs)) {
		return false
	}
	name, _, _ := bytes.Cut(strs[at:], []byte{0})
	for _, prefix := range librariesOfC {
		if strings.HasPrefix(string(name), prefix) {
			return true
		}
	}
	return false
}
