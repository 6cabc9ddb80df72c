package sites_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/sites"
)

// TestNearestLinesOfOverloads: functions of one name in one file have lines that are
// counted from their own declarations, whatever the order in which they are looked at.
func TestNearestLinesOfOverloads(t *testing.T) {
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "over.cc"), filepath.Join(dir, "over.o")
	text := `volatile int sink;
void over(int a)
{
	sink = a;
}



void over(long a)
{

	sink = a;

	sink = 1;
}
void over(char a)
{
	sink = a;
}
`
	if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(testenv.Tool(t, "g++"), "-g", "-O0", "-gdwarf-5", "-c", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	img, err := dwarfloc.Open(bin, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	over, err := glob.Compile("over")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		_, err := sites.Select(t.Context(), img, sites.Selection{Functions: over, Lines: &sites.Lines{Number: 40}})
		var none *sites.NotFoundError
		if !errors.As(err, &none) {
			t.Fatalf("got %v", err)
		}
		if want := []string{"1", "2", "3", "5", "6"}; !slices.Equal(none.Nearest, want) {
			t.Fatalf("nearest lines %v, want %v", none.Nearest, want)
		}
	}
}

// TestMangled: functions are found by their symbols too, unoptimized ones and clones included.
func TestMangled(t *testing.T) {
	const text = `volatile int sink;
namespace n { struct box { int v; int get(int i) const; }; }
__attribute__((noinline)) int n::box::get(int i) const { return v + i; }
static __attribute__((noinline)) int add(int *a, int unused) { return sink + *a; }
int main() { n::box b{sink}; int i = sink; return b.get(2) + add(&i, 1) + add(&i, 2); }
`
	for _, level := range []string{"-O0", "-O2"} {
		dir := t.TempDir()
		src, bin := filepath.Join(dir, "m.cc"), filepath.Join(dir, "m")
		if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(testenv.Tool(t, "g++"), "-g", level, "-o", bin, src).CombinedOutput(); err != nil {
			t.Fatalf("g++: %v\n%s", err, out)
		}
		img := testenv.Open(t, bin)
		for symbol, function := range map[string]string{"_ZNK1n3box3getEi": "get", "_ZL3addPii": "add"} {
			name, err := glob.Compile(symbol)
			if err != nil {
				t.Fatal(err)
			}
			found, err := sites.Select(t.Context(), img, sites.Selection{Functions: name})
			if err != nil || len(found) != 1 || found[0].Function != function {
				t.Errorf("%s: %s: %v, %v", level, symbol, found, err)
			}
		}
	}
}
