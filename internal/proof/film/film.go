// Package film draws a session at a terminal as an SVG image that plays once: commands are typed, and their answers appear. Where motion is not
// wanted, all of it is there at once. The image needs no script and no font but the reader's own.
package film

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Step is a command and what it printed.
type Step struct {
	Note    string // a line of explanation before it, or ""
	Command string
	Output  string
}

// Sizes in pixels, and times in seconds.
const (
	cell   = 7.8
	line   = 19
	margin = 16
	bar    = 28 // with the title

	perKey    = 0.035
	perLine   = 0.05
	afterStep = 1.2
)

const style = `
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre }
.p { fill: #8fbc8f } .n { fill: #88a0b8; font-style: italic } .t { fill: #9aa5b1; text-anchor: middle }
.o { opacity: 0; animation: show .01s forwards }
.c { clip-path: inset(0 100% 0 0); animation: type linear forwards }
@keyframes show { to { opacity: 1 } }
@keyframes type { to { clip-path: inset(-4px -4px -4px 0) } }
@media (prefers-reduced-motion: reduce) { .o, .c { animation: none; opacity: 1; clip-path: none } }
`

// SVG returns the image. Lines longer than columns are cut, with a mark.
func SVG(title string, columns int, steps []Step) string {
	var b strings.Builder
	at, row := 0.0, 0
	put := func(class, text, animation string) {
		if n := utf8.RuneCountInString(text); n > columns {
			text = string([]rune(text)[:columns-1]) + "…"
		}
		if text != "" {
			y := bar + margin + row*line + 12
			fmt.Fprintf(&b, "<text class=\"%s\" x=\"%d\" y=\"%d\" textLength=\"%.1f\" style=\"animation-%s\">%s</text>\n",
				class, margin, y, cell*float64(utf8.RuneCountInString(text)), animation, escaped(text))
		}
		row++
	}
	for _, s := range steps {
		if s.Note != "" {
			class := "n o"
			if row == 0 {
				class = "n" // is there from the beginning: an empty picture looks like one that failed
			}
			put(class, "# "+s.Note, fmt.Sprintf("delay:%.2fs", at))
			at += afterStep
		}
		keys := utf8.RuneCountInString(s.Command)
		put("p c", "$ "+s.Command, fmt.Sprintf("delay:%.2fs;animation-duration:%.2fs;animation-timing-function:steps(%d)", at, float64(keys)*perKey, keys+2))
		at += float64(keys)*perKey + 0.4
		for text := range strings.Lines(s.Output) {
			put("o", strings.TrimRight(text, "\n"), fmt.Sprintf("delay:%.2fs", at))
			at += perLine
		}
		row++ // an empty line
		at += afterStep
	}
	width, height := int(2*margin+cell*float64(columns)), bar+2*margin+(row-1)*line
	var head strings.Builder
	fmt.Fprintf(&head, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>%s</title>\n<style>%s</style>\n", width, height, escaped(title), style)
	fmt.Fprintf(&head, "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#1d232b\"/>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#2a323d\"/>\n", width, height, width, bar)
	fmt.Fprintf(&head, "<text class=\"t\" x=\"%d\" y=\"19\">%s</text>\n", width/2, escaped(title))
	return head.String() + b.String() + "</svg>\n"
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder has no errors
	return b.String()
}

// Texts returns the lines that an image shows, commands with their prompts.
func Texts(svg string) ([]string, error) {
	var out []string
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "text" {
			var t struct {
				Class string `xml:"class,attr"`
				Text  string `xml:",chardata"`
			}
			if err := d.DecodeElement(&t, &start); err != nil {
				return nil, err
			}
			if t.Class != "t" {
				out = append(out, t.Text)
			}
		}
	}
}
