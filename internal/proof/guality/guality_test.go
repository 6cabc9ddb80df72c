package guality

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestRead: lines of checks can be relative to the comment's, and in another file.
func TestRead(t *testing.T) {
	got := read("/x/a.c", `/* { dg-options "-g -fno-ipa-icf" } */
/* { dg-skip-if "" { *-*-* }  { "*" } { "-O0" "-O1" } } */
int f; /* { dg-final { gdb-test . "f" "3 * 17" { target { ! "s390*-*-*" } } } } */
int g; // { dg-final { gdb-test .+2 "g" "-1" } }
/* { dg-final { gdb-test 14 "arg1" "1" } } */
/* { dg-final { gdb-test b.c:7 "h" "2" } } */
/* { dg-final { gdb-test 15 "var"  "1" } } */
/* { dg-final { gdb-test 16 "*x" "(char) 25" } } */
/* { dg-final { gdb-test @main "y" "2" } } */
/* { dg-final { gdb-test 9 "type:y" "int" } } */
/* { dg-additional-sources "b.c" } */
`)
	want := Case{
		Path: "/x/a.c", Sources: []string{"/x/b.c"}, Flags: []string{"-g", "-fno-ipa-icf"}, Skips: []string{"-O0", "-O1"},
		Checks: []Check{{"a.c", "f", "3 * 17", 3}, {"a.c", "g", "-1", 6}, {"a.c", "arg1", "1", 14}, {"b.c", "h", "2", 7}, {"a.c", "var", "1", 15}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.Skipped("-O2") || !got.Skipped("-O1") {
		t.Error("options with which it is not compiled")
	}
	if og := (&Case{Path: "/x/Og-a.c"}); og.Skipped("-O0") || og.Skipped("-Og") || !og.Skipped("-O1") {
		t.Error("programs for -Og alone")
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
		{"4647257418609197056", "486", Right},
	} {
		if got := judged(c.got, c.want, Lost); got != c.is {
			t.Errorf("%q of %q: %d, want %d", c.got, c.want, got, c.is)
		}
	}
}

// TestPrograms: nothing is wrong, and values of the caller's frame are fetched, in the running kernel.
func TestPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "programs are traced by root")
	}
	for _, name := range []string{"gcc-12", "gdb"} {
		testenv.Tool(t, name)
	}
	cases, err := Cases(filepath.Join(testenv.Cache(), "source/gcc-12-guality"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		testenv.Missing(t, "scripts/fetch-source.sh gcc-12 guality")
	}
	for option, least := range map[string]int{"-O2": 129, "-O3": 113} { // of the checks of these programs
		right, checked := 0, 0
		for i := range cases {
			c := &cases[i]
			if !called.MatchString(c.Path) {
				continue
			}
			answers, err := Run(t.Context(), t.TempDir(), Build{"gcc-12", option}, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range answers {
				at := fmt.Sprintf("%s:%d %s", a.File, a.Line, a.Var)
				checked++
				switch a.Ours {
				case Right:
					right++
				case Wrong:
					t.Errorf("%s: %s is %s, want %s", option, at, a.Got, a.Want)
				default:
					t.Logf("%s: %s: %s", option, at, a.Got)
				}
			}
		}
		if right < least {
			t.Errorf("%s: %d of %d values are right, want %d", option, right, checked, least)
		}
	}
}

// called are programs in which callers know most values.
var called = regexp.MustCompile(`(ipa-sra-1|pr(36728|48437|54519|54551|54796|68860)[-0-9]*)\.c`)
