// Package imports tests the direction of imports between this module's packages.
package imports

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/bpfprologue/bpfprologue/"

// TestArrows checks that packages do not depend, directly or indirectly, on what they must
// not. docs/design.md lists what each imports directly, and a test there checks it.
func TestArrows(t *testing.T) {
	const (
		ebpf = "github.com/cilium/ebpf"
		link = ebpf + "/link"
		feat = ebpf + "/features"
	)
	kernel := []string{link, feat, module + "instances", module + "tracer"}
	for pkg, forbidden := range map[string][]string{
		"glob":           {ebpf, "github.com/go-delve", "debug/elf", module + "dwarfloc", module + "sites", module + "plan"},
		"probe":          {ebpf, "github.com/go-delve", "debug/elf", module + "dwarfloc", module + "sites", module + "plan"},
		"sites":          {ebpf, module + "plan", module + "prologue"},
		"dwarfloc":       {ebpf, module + "sites", module + "plan", module + "prologue"},
		"prologue":       append(kernel, module+"plan", module+"sites", module+"probe"),
		"plan":           kernel,
		"export":         kernel,
		"coverage":       kernel,
		"attachable":     append(kernel, module+"plan"),
		"internal/share": kernel,
		"instances":      {module + "tracer", module + "export", module + "coverage"},
	} {
		out, err := exec.Command("go", "list", "-deps", module+pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		for dep := range strings.Lines(string(out)) {
			dep = strings.TrimSpace(dep)
			for _, f := range forbidden {
				if dep == f || strings.HasPrefix(dep, f+"/") {
					t.Errorf("%s depends on %s", pkg, dep)
				}
			}
		}
	}
}
