// Package needed says by a program's dynamic section what runs together with it.
package needed

import (
	"bytes"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/image"
)

// librariesOfC are the beginnings of the names of the C library's own libraries.
var librariesOfC = []string{"libc.so", "libc.musl", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so", "libcrypt.so", "libutil.so", "ld-linux", "ld-musl", "ld.so", "ld64.so", "linux-vdso"}

// unwinding has functions whose caller may see frames of the program unwound, or load a library that does it.
var unwinding = []string{"pthread_exit", "pthread_cancel", "thrd_exit", "dlopen", "dlmopen", "_Unwind_RaiseException", "_Unwind_ForcedUnwind", "__cxa_throw"}

// OnlyC reports whether nothing unwinds the stack of a program: it is an executable, with an interpreter, that needs no library but
// those of C, has no tables for exceptions of its own, and names no function that unwinds. false if that cannot be known.
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
	for _, name := range unwinding {
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
		const end, library = 0, 1 // DT_NULL, DT_NEEDED: System V ABI, figure 5-10
		tag, value := next(), next()
		if tag == end {
			return true
		}
		if tag == library && !ofC(strs, value) {
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
