package page_test

import (
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/page"
)

// TestWrite: a title and data are anybody's text, and neither ends an element, starts one, nor is filled in itself.
func TestWrite(t *testing.T) {
	hostile := `</title></script><script>alert(1)</script>{{.Body}}`
	var out strings.Builder
	if err := page.Write(&out, &page.Page{Title: hostile, Body: "<p>body</p>\n", Script: "show(report);", Data: []string{hostile}}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for part, times := range map[string]int{
		"<script>": 1, "</script>": 1, "</title>": 1, "<p>body</p>": 1, "show(report);": 1, "alert(1)": 2, "{{.Body}}": 2,
		"<title>&lt;/title&gt;&lt;/script&gt;": 1, `const report = ["\u003c/title\u003e`: 1,
	} {
		if n := strings.Count(text, part); n != times {
			t.Errorf("%q is there %d times, not %d:\n%s", part, n, times, text)
		}
	}
}
