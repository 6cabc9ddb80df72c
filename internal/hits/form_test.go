package hits

import (
	"strings"
	"testing"
)

func TestForm(t *testing.T) {
	data := map[string]string{"comm": "sh", "n": "41", "none": "", "zero": "0"}
	for text, want := range map[string]string{
		"":                           "",
		"plain {{/* not said */}}x":  "plain x",
		"{{.comm}} {{.n}}|{{.none}}": "sh 41|",
		`{{if eq .n "41"}}yes{{else}}no{{end}}{{if .none}}x{{end}}`:      "yes",
		`{{if ne .n 40 42}}a{{else if .comm}}b{{end}}`:                   "a",
		`{{if eq .n 40}}a{{else if eq .comm "sh"}}b{{else}}c{{end}}`:     "b",
		`{{or .none "-"}} {{and .n .comm}} {{not .none}}`:                "- sh true",
		`{{.n | eq "41"}}{{if (and .n (eq .comm "sh" "bash"))}}!{{end}}`: "true!",
		"{{- .n -}} x": "41x",
		`{{if 0}}a{{else if 0.0}}b{{else if not 0x0}}c{{end}}{{if 1}}d{{end}}`:           "cd",
		`{{or 0 .n}} {{or .none 0}} {{and .n 0}} {{and 1 .n}} {{if .zero}}a text{{end}}`: "41 0 0 41 a text",
		`{{if eq .zero 0}}none{{end}}{{if and (eq .zero 0) 0}}!{{end}}`:                  "none",
	} {
		f, err := newForm(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var b strings.Builder
		if f.write(&b, data); b.String() != want {
			t.Errorf("%s: %q, not %q", text, b.String(), want)
		}
	}
	for text, want := range map[string]string{
		"{{.n": "unclosed action", "{{.a.b}}": "a line has names", "{{range .n}}{{end}}": "a line has names", "{{$x := .n}}": "a line has names",
		"{{printf .n}}": `function "printf" not defined`, `{{define "x"}}{{end}}`: "it defines templates", "{{eq .n}}": "1 values", "{{.n .comm}}": "2 values",
		"{{.}}": "a line has names", "{{true}}": "a line has names", "{{not}}": "0 values", `{{template "line"}}`: "a line has names",
	} {
		if _, err := newForm(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, not %q", text, err, want)
		}
	}
}
