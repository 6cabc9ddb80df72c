package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Role is what a part of an answer is. Each has a color of its own.
type Role uint8

// The roles.
const (
	RolePlace   Role = iota // a site, a function: what a part of the answer is about
	RoleName                // an argument, a variable
	RoleType                // its type
	RoleFound               // where it is; what was done
	RoleMissing             // why it is nowhere; what was not done
	RoleFault               // an error
	RoleAside               // addresses, instructions: what is not read first
)

// renditions are SGR parameters by role. They are of the eight colors that every terminal has, and none is
// the color of the background of a usual one.
var renditions = [...]string{RolePlace: "1", RoleName: "36", RoleType: "34", RoleFound: "32", RoleMissing: "33", RoleFault: "1;31", RoleAside: "2"}

// Look is how an answer looks where it is printed.
type Look struct {
	Colored bool
	Width   int // of lines; 0: any
}

// Styled returns a text in the color of its role, if there are colors.
func (l Look) Styled(r Role, text string) terminal.Styled {
	if !l.Colored {
		return terminal.Styled{Text: text}
	}
	return terminal.Styled{Text: text, SGR: renditions[r]}
}

// Styledf is styled for a formatted text.
func (l Look) Styledf(r Role, format string, args ...any) terminal.Styled {
	return l.Styled(r, fmt.Sprintf(format, args...))
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
