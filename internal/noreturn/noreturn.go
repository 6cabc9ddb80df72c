// Package noreturn knows functions that do not return, and that compilers call by themselves: debug information declares none of these.
package noreturn

import "strings"

// Functions are those that C and C++ compilers call, and whether that is a check: it fails only when something is wrong.
var Functions = map[string]bool{
	"__stack_chk_fail": true, "__stack_chk_fail_local": true, // GCC's and LLVM's -fstack-protector
	"__ubsan_handle_builtin_unreachable": true, "__ubsan_handle_missing_return": true, // compiler-rt, lib/ubsan
	"__fortify_fail": true, "__chk_fail": true, // glibc, debug/
	"_Unwind_Resume": false, "_Unwind_Resume_or_Rethrow": false, // Itanium C++ ABI: Exception Handling, 1.5.2
	"__cxa_throw": false, "__cxa_rethrow": false, "__cxa_bad_cast": false, // the same, 2.4
	"__cxa_bad_typeid": false, "__cxa_throw_bad_array_new_length": false,
	"__clang_call_terminate": false, "__cxa_call_unexpected": false,
}

// Go reports whether a function of Go's runtime does not return: the failures of checks that
// the compiler inserts, and panics (cmd/compile/internal/typecheck/builtin.go).
func Go(name string) bool {
	own, is := strings.CutPrefix(name, "runtime.")
	if !is {
		return false
	}
	switch own {
	case "gopanic", "goexit", "throw", "fatal", "block":
		return true
	}
	return strings.HasPrefix(own, "panic") || strings.HasPrefix(own, "goPanic")
}
