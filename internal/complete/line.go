// Package complete completes what a user has begun to type: the words of a shell's line, and the probe
// definitions that some of these words are.
package complete

import "strings"

// Line is a shell's line up to the cursor.
type Line struct {
	// Words are the words of the last command of the line without their quotes; the last one
	// is what is completed, and may be empty.
	Words []string
	// Quote is the quotation mark that is open at the cursor, or 0.
	Quote byte
	// Acts is the first character that a shell acts on, as it expands it or another command begins, or 0.
	Acts byte

	raw string // the last word, with its quotes
}

// ParseLine reads a line as POSIX shells do, as far as words go: nothing is expanded.
func ParseLine(text string) Line {
	var l Line
	var word strings.Builder
	in := false // a word
	start := 0
	end := func() {
		if in {
			l.Words = append(l.Words, word.String())
			word.Reset()
			in = false
		}
	}
	begin := func(i int) {
		if !in {
			in, start = true, i
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if l.Acts == 0 && (l.Quote == 0 && (strings.IndexByte("$`;|&()<>*?[{", c) >= 0 || !in && (c == '~' || c == '#')) || l.Quote == '"' && (c == '$' || c == '`')) {
			l.Acts = c
		}
		switch {
		case l.Quote == '\'' && c != '\'', l.Quote == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case l.Quote != 0 && c == l.Quote:
			l.Quote = 0
		case c == '\\':
			begin(i)
			if i+1 == len(text) {
				break
			}
			// In double quotes a backslash stands for itself before most characters.
			if i++; l.Quote == '"' && strings.IndexByte("$`\"\\\n", text[i]) < 0 {
				word.WriteByte('\\')
			}
			word.WriteByte(text[i])
		case c == '\'' || c == '"':
			begin(i)
			l.Quote = c
		case c == ' ' || c == '\t' || c == '\n':
			end()
		case c == ';' || c == '|' || c == '&' || c == '(':
			end()
			l.Words = nil // another command begins
		default:
			begin(i)
			word.WriteByte(c)
		}
	}
	if in {
		l.raw = text[start:]
	}
	l.Words = append(l.Words, word.String())
	return l
}

// Bash returns what bash has to put in place of the part of the last word that it completes, which begins
// after the open quotation mark, or else after the last of the characters at which readline breaks words.
// ok is false for a word that bash cannot complete to.
func (l *Line) Bash(word string) (text string, ok bool) {
	switch l.Quote {
	case '\'':
		return word, !strings.Contains(word, "'")
	case '"':
		return escape(word, "$`\"\\"), true
	}
	if strings.ContainsAny(l.raw, `'"`) {
		return "", false // a part of it was quoted
	}
	text = escape(word, " \t\n'\"\\$`|&;<>(){}*?[]#~!")
	if cut := strings.LastIndexAny(l.raw, ":="); cut >= 0 {
		head := l.raw[:cut+1]
		if !strings.HasPrefix(text, head) {
			return "", false
		}
		text = text[len(head):]
	}
	return text, true
}

// escape puts a backslash before each of some characters.
func escape(s, special string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(special, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
