package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/plantest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
)

// TestCounters: a place with a counter, which a program passes only while that is not 0, has it in every format that can say it, and is left
// out of others.
func TestCounters(t *testing.T) {
	const source = `
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short shop_sell_semaphore __attribute__((section(".probes")));
int main(int argc, char **argv) { if (shop_sell_semaphore) DTRACE_PROBE1(shop, sell, argc); return 0; }
`
	gcc := testenv.Tool(t, "gcc-12")
	if err := exec.Command(gcc, "-E", "-include", "sys/sdt.h", "-x", "c", "/dev/null").Run(); err != nil {
		testenv.Missing(t, "sys/sdt.h is not installed: run \"make deps\"")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O2", "-o", path, path+".c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	img, err := dwarfloc.Open(path, &dwarfloc.Options{Symbols: true})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	p := plantest.New(t, img, "%sdt_shop:sell $arg1", plan.Options{})
	o := export.Options{Path: path}
	for _, c := range []struct {
		name  string
		write func(w *strings.Builder) error
		want  string
	}{
		{"tracefs", func(w *strings.Builder) error { return export.Tracefs(w, p, o) }, `(?m)^p:probe/shop_sell \S+:0x[0-9a-f]+\(0x[0-9a-f]+\) arg1=%di:x32$`},
		{"bpftrace", func(w *strings.Builder) error { return export.Bpftrace(w, p, o) }, `(?m)^// shop:sell at main.*: a uprobe of bpftrace does not increment the counter .*: usdt:\S+:shop:sell does$`},
		{"Go", func(w *strings.Builder) error { return export.Go(w, p) }, `while the counter at 0x[0-9a-f]+ in the file is not 0 \(ref_ctr_offset\)`},
	} {
		var w strings.Builder
		if err := c.write(&w); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !regexp.MustCompile(c.want).MatchString(w.String()) {
			t.Errorf("%s: no %s in\n%s", c.name, c.want, w.String())
		}
	}
}
