package probe

import "strings"

// Candidates returns the alternatives of a function's pattern, "kfree_skb_reason|kfree_skb": the first one of which
// an image has a function is meant. A bar after a backslash is a part of a name, as one of C++'s operators
// operator|, operator|= and operator|| is. Without alternatives it is the pattern itself.
func (p *Point) Candidates() (out []string) {
	text, from := p.Function, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if n := strings.IndexByte(text[min(i+2, len(text)):], ']'); n >= 0 {
				i += 2 + n
			}
		case '|':
			before := text[from:i]
			if strings.HasSuffix(strings.TrimSuffix(before, "|"), "operator") || i == from || i == len(text)-1 {
				continue
			}
			out = append(out, before)
			from = i + 1
		}
	}
	return append(out, text[from:])
}
