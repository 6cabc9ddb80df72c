package guality

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead: lines of checks can be relative to the comment's, and in another file.
func TestRead(t *testing.T) {
	got := read("/x/a.c", `/* { dg-options "-g -fno-ipa-icf" } */
/* { dg-skip-if "" { *-*-* }  { "*" } { "-O0" "-O1" } } */
int f; /* { dg-final { gdb-test . "f" "3 * 17" { target { ! "s390*-*-*" } } } } */
int g; // { dg-final { gdb-test .+2 "g" "-1" } }
/* { dg-final { gdb-test 14 "arg1" "1" } } */
/* { dg-final { gdb-test b.c:7 "h" "2" } } */
/* { dg-final { gdb-test 16 "*x" "(char) 25" } } */
/* { dg-final { gdb-test @main "y" "2" } } */
/* { dg-final { gdb-test 9 "type:y" "int" } } */
/* { dg-additional-sources "b.c" } */
`)
	want := Case{
		Path: "/x/a.c", Sources: []string{"/x/b.c"}, Flags: []string{"-g", "-fno-ipa-icf"}, Skips: []string{"-O0", "-O1"},
		Checks: []Check{{"a.c", "f", "3 * 17", 3}, {"a.c", "g", "-1", 6}, {"a.c", "arg1", "1", 14}, {"b.c", "h", "2", 7}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.Skipped("-O2") || !got.Skipped("-O1") {
		t.Error("options with which it is not compiled")
	}
}

// TestJudged: GDB computes what is expected with other widths than the program has.
func TestJudged(t *testing.T) {
	for _, c := range []struct {
		got, want string
		is        Verdict
	}{
		{"", "1", Lost},
		{"1", "1", Right},
		{"2", "1", Wrong},
		{"4294967295", "18446744073709551615", Right},
		{"18446744073709551615", "4294967295", Right},
		{"4294967297", "1", Wrong},
		{"4294967297", "8589934593", Wrong},
	} {
		if got := judged(c.got, c.want, Lost); got != c.is {
			t.Errorf("%q of %q: %d, want %d", c.got, c.want, got, c.is)
		}
	}
}
