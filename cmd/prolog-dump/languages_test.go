package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// wideSource passes integers of 16 bytes and the address of a function.
const wideSource = `
typedef __int128 i128;
typedef unsigned __int128 u128;
struct wide { i128 big; };
static void hello(void) { }
__attribute__((noipa)) void take(void (*f)(void), i128 big, u128 most, struct wide *w) { f(); }
int main(void)
{
	struct wide w = {-5};
	take(hello, ((i128)1 << 100) + 7, ~(u128)0, &w);
	take(hello, -3, 5, &w);
	return 0;
}
`

// TestLanguages: strings, slices and pointers of C++ and Go, as their languages have them; integers of two words; names of functions.
func TestLanguages(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	source, err := filepath.Abs("../../examples/shop")
	if err != nil {
		t.Fatal(err)
	}
	build := func(words ...string) {
		t.Helper()
		c := exec.Command(testenv.Tool(t, words[0]), words[1:]...)
		c.Dir, c.Stdin = dir, strings.NewReader(wideSource)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	build("g++-12", "-g", "-O2", "-o", "cc", filepath.Join(source, "shop.cc"))
	build("go", "build", "-pgo=off", "-o", "go", filepath.Join(source, "goshop", "main.go"))
	build("gcc-12", "-g", "-O1", "-o", "c", "-x", "c", "-")
	const goSell = "main.(*till).sell"
	values := regexp.MustCompile(`[\w.]+=(".*?"|\[.*?\]|\S+)`)
	for _, x := range []struct{ program, condition, definition, want string }{
		{"cc", `what == "tea"`, "sell what price", `what="tea" price=4`},
		{"cc", `what != "tea"`, "sell price", `price=60 price=0`},
		{"cc", `"tea" != what`, "sell price", `price=60 price=0`},
		{"cc", `who.name ~ "bob*not*"`, "sell price", `price=60`}, // with a NUL after it, so any pattern will do
		{"cc", `who.name ~ "?nn"`, "sell price", `price=4 price=0`},
		{"cc", `who.name ~ "bob*short"`, "sell price", `price=60`},
		{"cc", `who.name ~ "ann*n"`, "sell price", ``}, // what is before the star and what is after it do not overlap
		{"cc", `price > 0`, "sell who.orders who.orders[0] x=who.orders[0..2] y=who.orders[1..9] z=who.orders[3]",
			`orders=[1, 2, 3] orders_2=1 x=[1, 2] y=[2, 3] z=? orders=[] orders_2=? x=[] y=[] z=?`},
		{"cc", `who.orders[price-2] == 3`, "sell price", `price=4`},
		{"go", `what == "tea"`, goSell + " what who.name t.sum", `what="tea" name="ann" sum=0`},
		{"go", `what ~ "k*le"`, goSell + " who.orders[1] prices[0..9]", `orders=2 prices=[4, 60]`},
		{"go", `what ~ "kettle?"`, goSell + " what", ``},
		{"go", `what == "kettl"`, goSell + " what", ``},
		{"go", `prices[1] == 60`, goSell + " what", `what="kettle"`},
		{"go", `who->name == "ann" && what ~ "*"`, goSell + " what", `what="tea" what="kettle" what="air"`},
		{"c", `big > 5`, "take big", `big=1267650600228229401496703205383`},
		{"c", `big == 1267650600228229401496703205383`, "take big", `big=1267650600228229401496703205383`},
		{"c", `big > 0x10000000000000000 && big < 0x7fffffffffffffffffffffffffffffff`, "take big", `big=1267650600228229401496703205383`},
		{"c", `-170141183460469231731687303715884105727 < big && big < 18446744073709551616`, "take big", `big=-3`},
		{"c", `most == 0xffffffffffffffffffffffffffffffff`, "take most", `most=340282366920938463463374607431768211455`},
		{"c", `big == -3`, "take big most", `big=-3 most=5`},
		{"c", `big <= -3`, "take big", `big=-3`},
		{"c", `most > 100`, "take most", `most=340282366920938463463374607431768211455`},
		{"c", `w->big < 0 && big != -3`, "take w->big f:symbol", `big=-5 f=hello`},
		{"c", `big < most`, "take $caller", `caller=main+OFFSET`}, // as in C, -3 is a large number then
	} {
		out, err := toolCommand(t, nil, "trace", "-q", "--if", x.condition, x.definition, "--", filepath.Join(dir, x.program)).Output()
		if err != nil {
			t.Errorf("%s, %s: %v", x.condition, x.definition, err)
			continue
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, " at ") || strings.Contains(line, "  take  ") {
				got = append(got, values.FindAllString(line, -1)...)
			}
		}
		if text := regexp.MustCompile(`\+0x[0-9a-f]+`).ReplaceAllString(strings.Join(got, " "), "+OFFSET"); text != x.want {
			t.Errorf("%s, %s: %s, want %s", x.condition, x.definition, text, x.want)
		}
	}
}
