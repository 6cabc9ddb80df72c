package probe

import (
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/syntax"
)

// The grammar of the package's comment, which docs/definitions.md repeats.
//
// A production is alternatives of sequences of factors.
type (
	production [][]factor
	factor     struct {
		group  production // in brackets, or nil
		many   bool       // { }
		absent bool       // [ ] or { }: it may be left out
		text   string     // a terminal in quotes
		name   string     // of a production or of a terminal in capitals
	}
)

// readGrammar reads the grammar of the package's comment.
func readGrammar(t *testing.T) map[string]production {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(f.Doc.Text(), "with expressions of C:\n\n")
	if !ok {
		t.Fatal("no grammar in doc.go")
	}
	text, _, _ = strings.Cut(text, "\n\n")
	var fields []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if f[0] != "|" {
			fields = append(fields, ".")
		}
		fields = append(fields, f...)
	}
	out := make(map[string]production)
	g := grammarParser{t, append(fields, ".")}
	for len(g.rest) > 1 {
		g.next(".")
		name := g.next("")
		g.next("=")
		out[name] = g.alternatives()
	}
	return out
}

type grammarParser struct {
	t    *testing.T
	rest []string
}

func (g *grammarParser) next(want string) string {
	got := g.rest[0]
	if want != "" && got != want {
		g.t.Fatalf("%s in the grammar, want %s: %s", got, want, strings.Join(g.rest, " "))
	}
	g.rest = g.rest[1:]
	return got
}

func (g *grammarParser) alternatives() production {
	p := production{nil}
	for {
		last := len(p) - 1
		switch word := g.rest[0]; word {
		case ".", ")", "]", "}":
			return p
		case "|":
			p = append(p, nil)
			g.next("|")
		case "(", "[", "{":
			g.next("")
			f := factor{group: g.alternatives(), many: word == "{", absent: word != "("}
			g.next(map[string]string{"(": ")", "[": "]", "{": "}"}[word])
			p[last] = append(p[last], f)
		default:
			g.next("")
			if text, ok := strings.CutPrefix(word, `"`); ok {
				p[last] = append(p[last], factor{text: strings.TrimSuffix(text, `"`)})
			} else {
				p[last] = append(p[last], factor{name: word})
			}
		}
	}
}

// samples are texts for the terminals.
var samples = map[string][]string{
	"NEWLINE": {"\n"}, "GROUP": {"grp"}, "EVENT": {"my_event"}, "PATH": {"/usr/lib/a b.so", "ext4"}, "NAME": {"named"},
	"FUNC": {"get_page", "tcp_*msg", `operator\ new\[]`, "app::f", "kfree_skb_reason|kfree_skb"}, "SRC": {"mm/slub.c", "*.c"},
	"PROVIDER": {"python", "lib*", "a-b"}, "PROBE": {"function__entry", "*", "q[a-c]?"},
	"LINE": {"7"}, "PATTERN": {`x*y`, `a\ b`}, "OFFSET": {"8", "0x10"}, "ADDRESS": {"0xffffffff81000000"},
	"TYPE":   {"u8", "s64", "x32", "u", "char", "bool", "string", "ustring", "hex", "symbol", "b4@2/32", "u32[4]", "hex[6]"},
	"MEMBER": {"member"}, "VARIABLE": {"variable"}, "REGISTER": {"di"}, "SYMBOL": {"symbol"}, "NUMBER": {"5", "0x1f"}, "N": {"2"},
	"CHARACTER": {"'x'"}, "REAL": {"1.5", "2.0e-3", "1e6"}, "TEXT": {`"text"`}, "CTYPE": {"struct sock *", "unsigned long", "u32"},
}

// writer writes what a grammar allows.
type writer struct {
	*rand.Rand
	grammar map[string]production
	depth   int
	used    map[string]bool // terminals and productions
}

func (w *writer) production(b *strings.Builder, p production) {
	if w.depth++; w.depth > 24 {
		p = p[len(p)-1:]
	}
	for _, f := range p[w.IntN(len(p))] {
		w.factor(b, f)
	}
	w.depth--
}

func (w *writer) factor(b *strings.Builder, f factor) {
	times := 1
	switch {
	case f.absent && (w.depth > 12 || w.IntN(2) == 0):
		return
	case f.many:
		times = 1 + w.IntN(2)
	}
	for range times {
		switch {
		case f.group != nil:
			w.production(b, f.group)
		case f.text == "..": // after a symbol, which may have periods, it needs the space
			w.used[f.text] = true
			b.WriteString(" .. ")
		case f.text != "":
			w.used[f.text] = true
			b.WriteString(f.text)
		default:
			w.named(b, f.name)
		}
	}
}

func (w *writer) named(b *strings.Builder, name string) {
	w.used[name] = true
	switch name {
	case "OPERATOR":
		level := levels[w.IntN(len(levels))]
		b.WriteString(" " + level[w.IntN(len(level))] + " ")
		return
	case "CTYPE":
		if strings.HasSuffix(b.String(), ",") { // container_of has the type of a structure
			b.WriteString("struct sock")
			return
		}
	case "argument":
		b.WriteByte(' ')
		var own strings.Builder
		w.production(&own, w.grammar[name])
		b.WriteString(own.String())
		return
	case "expression":
		if w.depth > 20 {
			b.WriteString("variable")
			return
		}
		// In parentheses there may be white space, and a number may be first.
		var own strings.Builder
		w.production(&own, w.grammar[name])
		text := own.String()
		if strings.ContainsAny(text, " ") || text[0] >= '0' && text[0] <= '9' {
			text = "(" + text + ")"
		}
		b.WriteString(text)
		return
	}
	if p := w.grammar[name]; p != nil {
		w.production(b, p)
		return
	}
	s := samples[name]
	b.WriteString(s[w.IntN(len(s))])
}

// allowed are errors for what the text below the grammar excludes.
var allowed = []string{
	"expected no member or element of",
	"expected each option once",
	"expected exec or module, found both",
	"expected each argument name once",
}

// TestGrammar: what the grammar of the comment allows is a definition, which prints as one that is equal. Every terminal of it is used.
func TestGrammar(t *testing.T) {
	grammar := readGrammar(t)
	w := &writer{Rand: rand.New(rand.NewPCG(20, 3)), grammar: grammar, used: make(map[string]bool)}
	valid, excluded := 0, 0
	for range 20000 {
		var b strings.Builder
		w.depth = 0
		w.named(&b, "definition")
		text := b.String()
		d, err := Parse(text)
		if err != nil {
			known := false
			for _, a := range allowed {
				known = known || strings.Contains(err.Error(), a)
			}
			if !known {
				t.Fatalf("%q: %+v", text, err)
			}
			excluded++
			continue
		}
		valid++
		again, err := Parse(d.String())
		if err != nil || !equalDefinitions(d, again) {
			t.Fatalf("%q prints as %q: %v", text, d, err)
		}
	}
	if valid < 10000 {
		t.Errorf("%d definitions are valid, %d are not", valid, excluded)
	}
	t.Logf("%d valid, %d excluded", valid, excluded)
	var all func(p production)
	all = func(p production) {
		for _, sequence := range p {
			for _, f := range sequence {
				all(f.group)
				if name := f.text + f.name; name != "" && !w.used[name] {
					t.Errorf("%s was never written", name)
				}
			}
		}
	}
	for _, p := range grammar {
		all(p)
	}
}

// TestGrammarComplete: the comment has every option, name after "$", operator and type that the parser knows.
func TestGrammarComplete(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	has := func(what, text string) {
		if !strings.Contains(string(doc), text) {
			t.Errorf("the comment does not have the %s %s", what, text)
		}
	}
	for _, name := range optionNames {
		has("option", `"`+name+`="`)
	}
	for _, s := range syntax.Specials {
		has("name", `"$`+s.Name+`"`)
	}
	for _, name := range taskNumbers {
		has("name", `"$`+name+`"`)
	}
	for _, level := range levels {
		for _, op := range level {
			has("operator", " "+op)
		}
	}
	for name := range syntax.TypeNames {
		has("type", name)
	}
	for name := range calls {
		has("form", `"`+name+`("`)
	}
}
