// Package imports tests the direction of imports between this module's packages.
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/bpfprologue/bpfprologue/"
	ebpf   = "github.com/cilium/ebpf"
	delve  = "github.com/go-delve/delve"
)

// never are dependencies, direct or indirect, that a package must not have. A path stands
// for what is below it too.
var never = map[string][]string{
	// Text only.
	"glob":  {ebpf, delve, "debug", module + "loc", module + "arch", module + "internal/image", module + "dwarfloc", module + "internal"},
	"probe": {ebpf, delve, "debug", module + "loc", module + "arch", module + "internal/image", module + "dwarfloc", module + "glob"},
	// Tables and symbolic locations: no reader of DWARF, no kernel.
	"arch":          {ebpf, delve, module + "internal/image", module + "internal/dw"},
	"loc":           {ebpf, delve, module + "internal/image", module + "internal/dw"},
	"internal/eval": {ebpf, delve + "/pkg/proc", delve + "/pkg/dwarf/line", module + "internal/image", module + "internal/dw", module + "internal/index"},
	"prologue": append(kernel, delve+"/pkg/proc", delve+"/pkg/dwarf/line",
		module+"internal/image", module+"internal/dw", module+"internal/index", module+"dwarfloc", module+"probe", module+"glob"),
	// Images: no BPF.
	"internal/image": {ebpf, module + "loc", module + "probe", module + "internal/dw", module + "internal/index"},
	"types":          {ebpf, module + "internal/image", module + "probe", module + "dwarfloc"},
	"internal/body":  {ebpf, module + "types", module + "probe", module + "dwarfloc"},
	// Code without variables.
	"internal/boundary": {ebpf, module + "types", module + "probe", module + "internal/entries", module + "dwarfloc"},
	"internal/folded":   {ebpf, module + "probe", module + "internal/resolve", module + "dwarfloc"},
	// What resolves variables knows no site, and what it resolves them from does not evaluate; of code, arithmetic asks an interface.
	"internal/arithmetic": {ebpf, module + "internal/body", module + "internal/entries", module + "dwarfloc"},
	"internal/entries":    {ebpf, module + "glob", module + "probe", module + "prologue", module + "dwarfloc", module + "internal/resolve"},
	"internal/convention": {ebpf, module + "glob", module + "probe", module + "prologue", module + "dwarfloc", module + "internal/resolve"},
	"internal/witness":    {ebpf, module + "glob", module + "probe", module + "prologue", module + "dwarfloc", module + "internal/resolve"},
	"internal/resolve":    {ebpf, module + "glob", module + "probe", module + "prologue", module + "dwarfloc"},
	"dwarfloc":            {ebpf, module + "glob", module + "probe", module + "prologue"},
	"sites":               {ebpf, module + "prologue"},
	"attachable":          {ebpf, module + "prologue", module + "sites"},
	// No kernel.
	"plan": kernel, "export": kernel, "coverage": kernel, "internal/share": kernel,
	// What starts with the tool, and takes time then, must be of use to more than one verb: cobra's man pages need Markdown and YAML.
	// Templates: see TestProofApart.
	"cmd/prolog-dump": {"github.com/spf13/cobra/doc", "html/template"},
}

// notDirect are packages that a package must not import itself, though what it imports may.
var notDirect = map[string][]string{
	"dwarfloc":            append(instructions, module+"internal/flow", module+"internal/ktable", module+"internal/judge", module+"internal/witness"),
	"internal/entries":    append(instructions, module+"internal/flow", module+"internal/ktable"),
	"internal/convention": append(instructions, module+"internal/flow", module+"internal/ktable", module+"internal/body"),
	"internal/witness":    append(instructions, module+"internal/flow", module+"internal/ktable", module+"internal/judge"),
	"internal/resolve":    append(instructions, module+"internal/flow", module+"internal/ktable"),
	// What instructions do is no kernel's business, and what follows code asks no kernel.
	"internal/insn": {module + "internal/probed"},
	"internal/flow": {module + "internal/probed"},
}

// instructions are about single instructions: above package body, nothing is.
var instructions = slices.Clip([]string{module + "internal/insn", module + "internal/symbolic", module + "internal/jumptable", module + "internal/probed"})

// kernel is what talks to a kernel.
var kernel = []string{ebpf + "/link", ebpf + "/features", ebpf + "/rlimit", ebpf + "/ringbuf", module + "instances", module + "tracer", module + "internal/kernelhas"}

// imports returns what each package of the module, and what they depend on, imports.
func imports(t *testing.T) map[string][]string {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		all[fields[0]] = fields[1:]
	}
	return all
}

// TestArrows checks that packages do not depend, directly or indirectly, on what they must
// not, and that debug/elf, which arch has constants of, goes no further. docs/design.md
// lists what each imports directly; a test there checks it, and that nothing imports a
// package above it.
func TestArrows(t *testing.T) {
	all := imports(t)
	for room, forbidden := range never {
		for dep := range dependencies(all, module+room) {
			for _, f := range forbidden {
				if dep == f || strings.HasPrefix(dep, f+"/") {
					t.Errorf("%s depends on %s", room, dep)
				}
			}
		}
	}
	for room, forbidden := range notDirect {
		for _, p := range all[module+room] {
			if slices.Contains(forbidden, p) {
				t.Errorf("%s imports %s", room, p)
			}
		}
	}
	for _, room := range []string{"loc", "internal/eval", "prologue", "plan", "sites", "instances"} {
		for _, p := range all[module+room] {
			if strings.HasPrefix(p, "debug/") {
				t.Errorf("%s imports %s", room, p)
			}
		}
	}
	for _, p := range all[module+"internal/image"] {
		if own, ok := strings.CutPrefix(p, module); ok && own != "arch" && !strings.HasPrefix(own, "internal/") {
			t.Errorf("internal/image imports %s", own)
		}
	}
}

// TestProofApart checks that nothing of the product depends on the proof, nor on delve's reader of call frames, which only the proof uses,
// nor imports what makes the tool large.
func TestProofApart(t *testing.T) {
	all := imports(t)
	for pkg := range all {
		own, is := strings.CutPrefix(pkg, module)
		if !is || strings.HasPrefix(own, "internal/proof") || strings.HasPrefix(own, "bench") {
			continue
		}
		// It looks methods up by name, for which the linker keeps all of them: 3 MB of the tool. (cobra's use is left out by the linker.)
		if slices.Contains(all[pkg], "text/template") {
			t.Errorf("%s imports text/template", own)
		}
		for dep := range dependencies(all, pkg) {
			if strings.HasPrefix(dep, module+"internal/proof") || strings.HasPrefix(dep, delve+"/pkg/dwarf/frame") {
				t.Errorf("%s depends on %s", own, dep)
			}
		}
	}
}

// dependencies returns what a package depends on.
func dependencies(all map[string][]string, pkg string) map[string]bool {
	found := make(map[string]bool)
	var visit func(string)
	visit = func(p string) {
		for _, dep := range all[p] {
			if !found[dep] {
				found[dep] = true
				visit(dep)
			}
		}
	}
	visit(pkg)
	return found
}
