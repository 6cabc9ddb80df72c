// Package page writes pages for a browser: one file each, which needs no network. A page gets what it shows
// as JSON, and its script makes text of that only, never elements.
package page

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
)

var (
	//go:embed page.html
	frameText string
	//go:embed page.css
	style string
	//go:embed page.js
	common string

	frame = template.Must(template.New("page").Parse(frameText))
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
	return frame.Execute(w, map[string]any{
		"Title": p.Title, "Style": template.CSS(style), "Body": template.HTML(p.Body), "Data": template.JS(data), "Script": template.JS(common + p.Script),
	})
}
