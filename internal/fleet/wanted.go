package fleet

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/bpfobject"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Wanted returns the definitions that arguments are, or that are in the object files that they name, and the arguments that name kernels.
func Wanted(args []string, parse func(text string) (*probe.Definition, error)) (wants []Want, kernels []string, err error) {
	for _, arg := range args {
		switch {
		case !namesFile(arg):
			def, err := parse(arg)
			if err != nil {
				return nil, nil, err
			}
			wants = append(wants, Want{Definition: def})
		case isObject(arg):
			of, err := definitionsIn(arg)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", arg, err)
			}
			wants = append(wants, of...)
		default:
			kernels = append(kernels, arg)
		}
	}
	return wants, kernels, nil
}

// namesFile reports whether an argument of check names a file or directory. Definitions have no slash, hyphen or period without a space,
// colon or the like beside it, except for names of clones, "tcp_check_oom.isra.0", of which there is no file.
func namesFile(arg string) bool {
	if strings.ContainsAny(arg, " \t\n:;@=*?[") || !strings.ContainsAny(arg, "/-.") {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || strings.Contains(arg, "/") || slices.Contains([]string{".o", ".pack", ".packs"}, filepath.Ext(arg))
}

// isObject reports whether a file is an object file of BPF programs, or by its name is to be one.
func isObject(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return strings.HasSuffix(path, ".o")
	}
	defer f.Close()
	return f.Machine == elf.EM_BPF
}

// definitionsIn returns the definitions of an object file's programs.
func definitionsIn(path string) (wants []Want, err error) {
	d, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o, err := bpfobject.Read(d)
	if err != nil {
		return nil, err
	}
	sections := o.Definitions(probe.LooksLikeDefinition)
	if len(sections) == 0 {
		return nil, bpfobject.ErrNoDefinition
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		def, err := probe.ParseSection(sections[name])
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		wants = append(wants, Want{Definition: def, Program: name})
	}
	return wants, nil
}
