// Package page writes pages for a browser: one file each, which needs no network. A page gets what it shows
// as JSON, and its script makes text of that only, never elements.
package page

import (
	_ "embed"
	"encoding/json"
	"html"
	"io"
	"strings"
)

var (
	//go:embed page.html
	frame string
	//go:embed page.css
	style string
	//go:embed page.js
	common string
)

// Page is a page.
type Page struct {
	Title  string // anybody's text
	Body   string // elements, of the program alone
	Script string // of the program alone; the data are "report" in it
	Data   any
}

// Write writes a page.
func Write(w io.Writer, p *Page) error {
	data, err := json.Marshal(p.Data) // which writes "<" as \u003c, so that no text ends the script
	if err != nil {
		return err
	}
	// A template would look methods up by name, for which the linker keeps every exported method of the whole program: 2.7 MB of the tool.
	fill := strings.NewReplacer(
		"{{.Title}}", html.EscapeString(p.Title), "{{.Style}}", style, "{{.Body}}", p.Body, "{{.Data}}", string(data), "{{.Script}}", common+p.Script)
	_, err = fill.WriteString(w, frame)
	return err
}
