// Package private takes out of a text what says who wrote it, and on which machine: home directories, the user's name, the
// machine's names, and what is secret in URLs. It is for texts that users hand to others.
package private

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Names are what must not be in a text, with what stands there instead.
type Names map[string]string

// Own returns the names of this user and this machine.
func Own() Names {
	n := make(Names)
	if home, err := os.UserHomeDir(); err == nil {
		n.add(filepath.Clean(home), "~")
		if actual, err := filepath.EvalSymlinks(home); err == nil {
			n.add(actual, "~")
		}
	}
	if u, err := user.Current(); err == nil {
		n.add(filepath.Clean(u.HomeDir), "~")
		n.add(u.Username, "USER")
	}
	for _, name := range []string{os.Getenv("SUDO_USER"), os.Getenv("USER"), os.Getenv("LOGNAME")} {
		n.add(name, "USER")
	}
	if host, err := os.Hostname(); err == nil {
		n.add(host, "HOST")
		short, _, _ := strings.Cut(host, ".")
		n.add(short, "HOST")
	}
	return n
}

// add adds a name. Every machine has a root, and a localhost.
func (n Names) add(name, instead string) {
	if name != "" && name != "/" && name != "root" && name != "localhost" {
		n[name] = instead
	}
}

// homes are home directories of anybody: debug information names those of whoever has compiled a program.
var homes = regexp.MustCompile(`/(?:home|Users|usr/home|var/home)/[^/\s"':;,)]+|/root\b`)

// Text returns a text without them. A name counts where it is a whole word: a machine may be called as a part of one is.
func (n Names) Text(text string) string {
	text = urls(text)
	names := make([]string, 0, len(n))
	for name := range n {
		names = append(names, name)
	}
	// A home directory before the user's name that ends it.
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, name := range names {
		before, after := `\b`, `\b`
		if !word(name[0]) {
			before = `(?:^|\B)`
		}
		if !word(name[len(name)-1]) {
			after = ""
		}
		text = regexp.MustCompile(before+regexp.QuoteMeta(name)+after).ReplaceAllLiteralString(text, n[name])
	}
	return homes.ReplaceAllLiteralString(text, "~")
}

var scheme = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://`)

// urls leaves of URLs their scheme and host: names, passwords, paths and queries may be what lets one in there.
func urls(text string) string {
	var b strings.Builder
	for {
		at := scheme.FindStringIndex(text)
		if at == nil {
			return b.String() + text
		}
		b.WriteString(text[:at[1]])
		text = text[at[1]:]
		end := len(text)
		if i := strings.IndexAny(text, " \t\r\n\"'`<>"); i >= 0 {
			end = i
		}
		if next := scheme.FindStringIndex(text[:end]); next != nil { // in a list
			end = next[0]
		}
		url := strings.TrimRight(text[:end], ":;,.)") // which belong to the sentence
		host, rest := url, ""
		if i := strings.IndexAny(url, "/?#"); i >= 0 {
			host, rest = url[:i], url[i:]
		}
		if strings.Contains(rest, "@") { // a password may have been written as it is
			host = ""
		}
		b.WriteString(host[strings.LastIndexByte(host, '@')+1:])
		if len(rest) > 1 {
			b.WriteString("/...")
		}
		text = text[len(url):]
	}
}

func word(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
