package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// role is what a part of an answer is. Each has a color of its own.
type role uint8

const (
	rolePlace   role = iota // a site, a function: what a part of the answer is about
	roleName                // an argument, a variable
	roleType                // its type
	roleFound               // where it is; what was done
	roleMissing             // why it is nowhere; what was not done
	roleFault               // an error
	roleAside               // addresses, instructions: what is not read first
)

// renditions are SGR parameters by role. They are of the eight colors that every terminal has, and none is
// the color of the background of a usual one.
var renditions = [...]string{rolePlace: "1", roleName: "36", roleType: "34", roleFound: "32", roleMissing: "33", roleFault: "1;31", roleAside: "2"}

var colorNames = []string{"auto", "always", "never"}

// chooseColor reports whether standard output is colored. See https://no-color.org for NO_COLOR.
func chooseColor(flag string, onTerminal bool) (bool, error) {
	automatic := onTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return choose("color", flag, colorNames, []bool{automatic, true, false})
}

// styled returns a text in the color of its role, if there are colors.
func (s *settings) styled(r role, text string) terminal.Styled {
	if !s.colored {
		return terminal.Styled{Text: text}
	}
	return terminal.Styled{Text: text, SGR: renditions[r]}
}

// styledf is styled for a formatted text.
func (s *settings) styledf(r role, format string, args ...any) terminal.Styled {
	return s.styled(r, fmt.Sprintf(format, args...))
}

// renditionAt returns the length of the sequence at the beginning of a text by which the tool chooses one
// of its renditions, or goes back from it. Others, which may hide what follows, are not the tool's.
func renditionAt(text string) int {
	rest, ok := strings.CutPrefix(text, "\x1b[")
	if !ok {
		return 0
	}
	n := strings.IndexByte(rest, 'm')
	if n < 0 || rest[:n] != "0" && !slices.Contains(renditions[:], rest[:n]) {
		return 0
	}
	return len("\x1b[") + n + len("m")
}
