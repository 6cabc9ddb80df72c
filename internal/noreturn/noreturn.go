// Package noreturn knows functions that do not return: those that compilers call by themselves, which debug information does not declare, and
// those of libraries, at whose calls it may not name them.
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

// library are functions that libraries of C and C++ declare so: ISO C 7.13 and 7.22.4, POSIX; glibc's assert.h, err.h and setjmp.h; std::terminate.
const library = " abort exit _exit _Exit quick_exit pthread_exit thrd_exit longjmp _longjmp siglongjmp __longjmp_chk " +
	"__assert_fail __assert_perror_fail __assert err errx verr verrx _ZSt9terminatev "

// Imported reports whether a function of another file does not return, and no handler of the code that calls it goes on either: a check that compilers call by themselves, or one that C's
// libraries declare so. LLVM need not say at a call of one which function that is: of __assert_fail and of other names with underscores it does not. What throws is none of these: where
// the exception is caught, the run goes on, and ends once.
func Imported(name string) bool {
	return Functions[name] || strings.Contains(library, " "+name+" ")
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
