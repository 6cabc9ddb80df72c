package plan_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestLoopEntry: a function whose first instruction is the head of its loop is hit on each turn, and its probe says so; also where only symbols
// are known of the function, and in a pack.
func TestLoopEntry(t *testing.T) {
	sources := map[string]string{"a.c": `
__attribute__((noipa)) void head(char *to, const char *from)
{
	for (; from[0] != 0; (void)from++, to++) {
		if (from[0] == '/') {
			to[0] = '~';
			to[1] = '1';
			to++;
		} else if (from[0] == '~') {
			to[0] = '~';
			to[1] = '0';
			to++;
		} else {
			to[0] = from[0];
		}
	}
	to[0] = 0;
}
__attribute__((noipa)) int behind(const char *from)
{
	int n = 0;
	for (; *from; from++)
		n = n * 10 + *from;
	return n;
}
__attribute__((noipa)) int straight(int x) { return x * 3; }
int main(int n, char **args) { char to[9999]; head(to, args[0]); return straight(behind(to)); }
`}
	for _, tt := range []struct{ compiler, options string }{{"gcc-11", "-Os"}, {"gcc-12", "-Os"}, {"gcc-12", "-O0"}} {
		t.Run(tt.compiler+" "+tt.options, func(t *testing.T) {
			img := built(t, tt.compiler, tt.options, sources)
			bare := filepath.Join(t.TempDir(), "bare")
			if out, err := exec.Command(testenv.Tool(t, "objcopy"), "--strip-debug", img.Path(), bare).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			symbols, err := dwarfloc.Open(bare, &dwarfloc.Options{Symbols: true})
			if err != nil {
				t.Fatal(err)
			}
			defer symbols.Close()
			for _, img := range []*dwarfloc.Image{img, packedImage(t, img), symbols} {
				for _, f := range []string{"head", "behind", "straight"} {
					again := f == "head" && tt.options != "-O0"
					if s := plantest.New(t, img, f, plan.Options{}).Sites[0]; s.Way.Again != again {
						t.Errorf("%v may be hit again: %v", s.Site, s.Way.Again)
					}
				}
			}
		})
	}
}
