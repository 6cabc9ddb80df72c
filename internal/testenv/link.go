package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/inside"
)

// linkers are programs that link files of an architecture.
var linkers = map[string]string{"amd64": "ld.bfd", "arm64": "ld.lld-14"}

// Linked links a relocatable file. The linker puts each section at the address that package
// image chose for it, and relocates the debug information with its own code. Linked returns
// the path of the result in dir.
func Linked(t TB, dir, path string) string {
	t.Helper()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer img.Close()
	ld := Tool(t, linkers[img.Arch().Name])
	sections := slices.Clone(inside.File(img).Sections())
	slices.SortFunc(sections, func(a, b image.Section) int { return int(int64(a.Addr) - int64(b.Addr)) })
	var script strings.Builder
	script.WriteString("SECTIONS {\n")
	for _, s := range sections {
		fmt.Fprintf(&script, "\t%s %#x : { KEEP(*(%s)) }\n", s.Name, s.Addr, s.Name)
	}
	for _, name := range []string{
		"abbrev", "addr", "frame", "info", "line", "line_str", "loc", "loclists", "ranges", "rnglists", "str", "str_offsets",
	} {
		fmt.Fprintf(&script, "\t.debug_%[1]s 0 : { *(.debug_%[1]s) }\n", name)
	}
	script.WriteString("\t/DISCARD/ : { *(.discard*) }\n}\n")
	lds, out := filepath.Join(dir, "layout.lds"), filepath.Join(dir, filepath.Base(path)+".linked")
	if err := os.WriteFile(lds, []byte(script.String()), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	// Nothing is merged (-O0), and .eh_frame is left as it is.
	cmd := exec.Command(ld, "-T", lds, "-e", "0", "-O0", "--unresolved-symbols=ignore-all", "--no-check-sections", "-o", out, path)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ld: %v\n%s", err, b)
	}
	return out
}

// Module returns the path of a kernel module with debug information: BENCH_MODULE,
// or what scripts/fetch-vmlinux.sh fetched ("make vmlinux").
func Module(t TB) string {
	t.Helper()
	if path := os.Getenv("BENCH_MODULE"); path != "" {
		return path
	}
	if os.Getenv("BENCH_VMLINUX") != "" {
		t.Skipf("no kernel module: an image was chosen with BENCH_VMLINUX, and none with BENCH_MODULE")
	}
	found, err := filepath.Glob(filepath.Join(Cache(), "*.ko"))
	if err != nil || len(found) == 0 {
		Missing(t, "no kernel module: delete the vmlinux in bench/.cache and run \"make vmlinux\", or set BENCH_MODULE")
		return ""
	}
	return found[0]
}
