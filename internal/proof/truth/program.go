package truth

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed testdata
var programs embed.FS

// Language is what a program is written in. Its sources are in the folder of that name.
type Language string

// The languages. recorded is the folder of what C, C++ and Rust programs record with.
const (
	C        Language = "c"
	CPP      Language = "cpp"
	Rust     Language = "rust"
	Go       Language = "go"
	recorded Language = "record"
)

// Definition is what is traced of a function. A comment of the program's source has it:
//
//	// trace: scale a b first=p[0]
type Definition struct {
	// Label is the definition's probe point, or the name that the comment gives it:
	// "trace area: Circle.area r". Runs are recorded under it.
	Label string
	Text  string
}

// Definitions returns the definitions of a language's program, sorted.
func Definitions(l Language) ([]Definition, error) {
	var all []Definition
	for _, folder := range []Language{l, recorded} {
		if l == Go && folder == recorded {
			continue // it has its own
		}
		of, err := definitionsIn(string(folder))
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, sorted(l, all)
}

// definitionsIn returns the definitions in the sources of a folder.
func definitionsIn(folder string) ([]Definition, error) {
	files, err := fs.Glob(programs, path.Join("testdata", folder, "*"))
	if err != nil {
		return nil, err
	}
	var all []Definition
	for _, f := range files {
		text, err := programs.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), "// trace")
			if !ok {
				continue
			}
			label, definition, ok := strings.Cut(rest, ": ")
			if !ok {
				continue
			}
			d := Definition{Label: strings.TrimSpace(label), Text: strings.TrimSpace(definition)}
			if d.Label == "" {
				d.Label, _, _ = strings.Cut(d.Text, " ")
			}
			all = append(all, d)
		}
	}
	return all, nil
}

// sorted sorts definitions by their labels, which must differ.
func sorted(l Language, all []Definition) error {
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.Label, b.Label) })
	for i := 1; i < len(all); i++ {
		if all[i].Label == all[i-1].Label {
			return fmt.Errorf("%s: two definitions for %s", l, all[i].Label)
		}
	}
	return nil
}

// writeSources writes all programs to a folder, each to a folder of its language's name.
func writeSources(dir string) error {
	return fs.WalkDir(programs, "testdata", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(name, "testdata"))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		text, err := programs.ReadFile(name)
		if err != nil {
			return err
		}
		// Go would take a file *.go of this package's folder for another package's.
		return os.WriteFile(strings.TrimSuffix(to, ".txt"), text, 0o600)
	})
}
