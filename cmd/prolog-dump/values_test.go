package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// valuesSource has structures named as Go's and Rust's compilers name theirs, with texts and slices inside.
const valuesSource = `
struct string { char *str; long len; };
struct inner { struct string city; char *street; };
union either { int i; float f; };
struct customer { struct string name; struct inner home; int lucky[2]; union either e; unsigned a : 3, b : 5; };
__attribute__((noipa)) void greet(struct customer *c, const char *note) { }
int main(void)
{
	struct customer c = {{"ann and more", 3}, {{"Oslo", 4}, "none"}, {7, 9}, {5}, 2, 17}, d = {{(char *)16, 5}, {{0, 0}, 0}, {1, 2}, {0}, 0, 0};
	greet(&c, "hello");
	greet(&d, 0);
	greet(&d, (char *)16);
	return 0;
}
`

// TestValues: texts inside of structures are texts; NULL is not what could not be read; in JSON structures are objects. A recording
// has the same.
func TestValues(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "greeter")
	if err := os.WriteFile(program+".c", []byte(valuesSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(testenv.Tool(t, "gcc-12"), "-g", "-O1", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	run := func(args ...string) []string {
		t.Helper()
		out, err := toolCommand(t, nil, args...).Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	want := []string{
		`c={name="ann", home={city="Oslo", street=0x`, `lucky=[7, 9], e={i=5, f=7e-45}, a=2, b=17}  note="hello"`,
		`c={name=?, home={city="", street=0x0}, lucky=[1, 2], e={i=0, f=0}, a=0, b=0}  note=NULL`, "",
		`  note=?`, "",
	}
	wantJSON := []string{
		`"value":{"name":"ann","home":{"city":"Oslo","street":"0x`, `"lucky":[7,9],"e":{"i":5,"f":7e-45},"a":2,"b":17}},{"name":"note","type":"const char *","value":"hello"}`,
		`"value":{"name":null,"home":{"city":"","street":"0x0"},`, `{"name":"note","type":"const char *","value":null}`,
		`{"name":"note","type":"const char *","lost":true}`, "",
	}
	check := func(what string, lines, want []string) {
		t.Helper()
		if len(lines) != 3 {
			t.Fatalf("%s: %d lines: %q", what, len(lines), lines)
		}
		for i, line := range lines {
			if !strings.Contains(line, want[2*i]) || !strings.Contains(line, want[2*i+1]) {
				t.Errorf("%s:\n%s\nhas not\n%s\n%s", what, line, want[2*i], want[2*i+1])
			}
		}
	}
	definition := "greet *c note:string"
	check("text", run("trace", "-q", definition, "--", program), want)
	check("JSON", run("trace", "-q", "--format", "json", definition, "--", program), wantJSON)
	hits := filepath.Join(dir, "hits")
	run("record", "-q", "-o", hits, definition, "--", program)
	check("recorded", run("trace", "-q", "-i", hits), want)
	check("recorded, as JSON", run("trace", "-q", "--format", "json", "-i", hits), wantJSON)
}

// leavingSource has runs of a function that do not end: one that longjmp leaves, and one in which the program ends.
const leavingSource = `
#include <setjmp.h>
#include <stdlib.h>
static jmp_buf back;
__attribute__((noipa)) int leave(int n, const char *how)
{
	if (n == 1) longjmp(back, 1);
	if (n == 3) exit(0);
	return n;
}
int main(void)
{
	for (volatile int i = 0; ; i++)
		if (!setjmp(back)) leave(i, "so");
}
`

// TestUnended: runs without an end have lines of their own, also recorded, and a condition on what they do not have leaves them out.
func TestUnended(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "leaver")
	if err := os.WriteFile(program+".c", []byte(leavingSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(testenv.Tool(t, "gcc-12"), "-g", "-O1", "-o", program, program+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	hits := filepath.Join(dir, "hits")
	form := "{{.n}} {{.how}} {{.retval}} {{.Outcome}}|"
	const all = "0 \"so\" 0 | 1 \"so\"  began again| 2 \"so\" 2 | 3 \"so\"  not ended|"
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "--span", "leave n how:string", "--line", form, "--", program}, all},
		{[]string{"record", "-o", hits, "--span", "leave n how:string", "--", program}, ""},
		{[]string{"trace", "-i", hits, "--line", form}, all},
		{[]string{"trace", "--span", "--if", "n > 0", "leave n how:string", "--line", form, "--", program}, strings.TrimPrefix(all, "0 \"so\" 0 | ")},
		{[]string{"trace", "--span", "--if", "$retval > 0", "leave n how:string", "--line", form, "--", program}, "2 \"so\" 2 |"},
	} {
		var errs strings.Builder
		c := toolCommand(t, nil, x.args...)
		c.Stderr = &errs
		out, err := c.Output()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != strings.Join(strings.Fields(x.want), " ") {
			t.Errorf("%q: %v\n%s\nwant %s\n%s", x.args, err, got, x.want, errs.String())
		}
		if counted := strings.Contains(errs.String(), "whose end was not seen"); counted != (strings.Contains(strings.Join(x.args, " "), "$retval")) {
			t.Errorf("%q: %s", x.args, errs.String())
		}
	}
}
