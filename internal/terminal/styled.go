package terminal

import "strings"

// Styled is an argument of Fprintf that is printed in a color or another rendition, without what a
// terminal obeys in Text. A width or a precision counts the sequences too.
type Styled struct {
	Text string
	// SGR is the parameters of ECMA-48's SELECT GRAPHIC RENDITION, digits and semicolons: "1" is
	// bold, "32" green. Without any, the text is printed as it is.
	SGR string
}

// rendered returns the text between the sequences that begin and end its rendition.
func (s Styled) rendered() string {
	text := Text(s.Text)
	if s.SGR == "" || text == "" || strings.Trim(s.SGR, "0123456789;") != "" {
		return text
	}
	return "\x1b[" + s.SGR + "m" + text + "\x1b[0m"
}

// Append appends what Fprintf prints of it.
func (s Styled) Append(b []byte) []byte { return append(b, s.rendered()...) }
