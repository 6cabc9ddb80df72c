package argument_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/argument"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/syntax"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// TestSet: the variable that is given stays as it is.
func TestSet(t *testing.T) {
	for _, kind := range []syntax.TypeSpec{{Kind: syntax.TypeString}, {Kind: syntax.TypeUnsigned, Bits: 64, Count: 9}, {Kind: syntax.TypeBitfield, Bits: 3, Container: 64}} {
		img := testenv.Fixture(t, "run-gcc12-O2-dwarf5.exe")
		sites, err := img.Sites(t.Context(), dwarfloc.Name("words"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := sites[0].Lookup("e") // an enumeration of 4 bytes
		if err != nil {
			t.Fatal(err)
		}
		before := v.Loc.Text(img.Arch())
		var a prologue.Arg
		own := argument.Set(&a, "e", v, kind, argument.Options{StringBytes: 64})
		if a.Reason.Code != reasons.TypeMismatch || own.Reason != a.Reason {
			t.Errorf("%v: the argument's reason is %v, its variable's %v", kind, a.Reason, own.Reason)
		}
		if !v.Located() || v.Loc.Text(img.Arch()) != before {
			t.Errorf("%v: the variable was changed: %v, %s", kind, v.Reason, v.Loc.Text(img.Arch()))
		}
	}
}

// TestLength: a prologue reads a length of 8 bytes, so a structure with a shorter one is no
// string, whatever its members and its type are called.
func TestLength(t *testing.T) {
	const source = `
struct view { const char *str; int len; } v;
struct string { char *str; int len; } s;
struct wide { char *str; long len; } w;
struct real { char *str; double len; } r;
volatile long sink;
__attribute__((noinline)) void take(struct view *view, struct view by, struct string text, struct wide wide, struct real *real)
{
	sink = view->len + by.len + text.len + wide.len + real->len;
}
int main(void) { take(&v, v, s, w, &r); return 0; }
`
	gcc := testenv.Tool(t, "gcc-12")
	dir := t.TempDir()
	file, path := filepath.Join(dir, "s.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O2", "-g", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sites, err := testenv.Open(t, path).Sites(t.Context(), dwarfloc.Name("take"))
	if err != nil {
		t.Fatal(err)
	}
	const refused = ", and a string is a char * or an array of char"
	for _, c := range []struct {
		name, want string // the reason with the type string
		plain      prologue.ArgKind
	}{
		{"view", `"view" is struct view *` + refused, prologue.KindScalar},
		{"by", `"by" is struct view` + refused, prologue.KindObject},
		{"text", `"text" is struct string` + refused, prologue.KindObject},
		{"wide", "", prologue.KindObject},
		{"real", `"real" is struct real *` + refused, prologue.KindScalar},
	} {
		v, err := sites[0].Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		o := argument.Options{Convention: prologue.ConventionRecord, StringBytes: 64}
		var a prologue.Arg
		if argument.Set(&a, c.name, v, syntax.TypeSpec{Kind: syntax.TypeString}, o); a.Reason.Detail != c.want {
			t.Errorf("%s as a string: %v, want %q", c.name, a.Reason, c.want)
		}
		if argument.Set(&a, c.name, v, syntax.TypeSpec{}, o); a.Kind != c.plain || a.Reason.Code != reasons.None {
			t.Errorf("%s: kind %v, %v; want %v", c.name, a.Kind, a.Reason, c.plain)
		}
	}
}
