package dwarfloc

import (
	"fmt"
	"strings"
)

// MissingError says which split units are not there: what they describe is missing from every answer. Units is how
// many they are, of Of in all, and Files their files, as the compiler named them and each once.
type MissingError struct {
	Path  string   `json:"-"`
	Units int      `json:"units"`
	Of    int      `json:"of"`
	Files []string `json:"files"`
}

// maxNamed is how many files an error names: Chromium has some ten thousand.
const maxNamed = 20

// Error names the files.
func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: answers are incomplete: %d of %d units are in files that are not there (-gsplit-dwarf):", e.Path, e.Units, e.Of)
	for _, name := range e.Files[:min(len(e.Files), maxNamed)] {
		fmt.Fprintf(&b, " %q", name)
	}
	if more := len(e.Files) - maxNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// Missing returns which split units are not there, if Options.Partial let queries answer about the others; or nil.
func (img *Image) Missing() *MissingError { return img.lost }
