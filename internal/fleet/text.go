package fleet

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/jsonline"
	"github.com/bpfprologue/bpfprologue/internal/order"
	"github.com/bpfprologue/bpfprologue/internal/page"
	"github.com/bpfprologue/bpfprologue/internal/screen"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
)

// Text prints the table: for each definition a line for each kernel, and below that what is wrong there.
func (t *Table) Text(w io.Writer, look screen.Look, r Requirement) error {
	for i := range t.Definitions {
		d := &t.Definitions[i]
		if i > 0 {
			terminal.Fprintf(w, "\n")
		}
		terminal.Fprintf(w, "%s%s\n", look.Styledf(screen.RolePlace, "%s", d.Text), programText(d))
		table := screen.Table{Width: look.Width, Indent: "  "}
		for k := range d.Cells {
			c := &d.Cells[k]
			role := screen.RoleMissing
			if r.Met(c) {
				role = screen.RoleFound
			}
			if c.Error != "" {
				table.Row(c.Kernel, "", "", look.Styled(screen.RoleFault, c.Error))
			} else {
				table.Row(c.Kernel, c.sites(), c.share(), look.Styled(role, strings.Join(c.remarks(), "; ")))
			}
			if c.Candidates != "" {
				table.Row("", "", "", look.Styledf(screen.RoleName, "works here: %s", c.Candidates))
			}
		}
		if err := table.Print(w); err != nil {
			return err
		}
	}
	met, all := t.Met(r)
	terminal.Fprintf(w, "\n%s on %s: %d of %d answers have what is required: %s\n",
		screen.Count(len(t.Definitions), "definition"), screen.Count(len(t.Kernels), "kernel"), met, all, r)
	return nil
}

func programText(d *Definition) string {
	if d.Program == "" {
		return ""
	}
	return "  (" + d.Program + ")"
}

// sites says how many sites there are.
func (c *Cell) sites() string {
	text := screen.Count(c.OutOfLine+c.Inlined, "site")
	switch {
	case c.Inlined > 0 && c.OutOfLine == 0:
		text += ", inlined"
	case c.Inlined > 0:
		text += fmt.Sprintf(", %d inlined", c.Inlined)
	}
	if c.Probes != c.OutOfLine+c.Inlined {
		text += fmt.Sprintf(" (%s)", screen.Count(c.Probes, "probe"))
	}
	return text
}

// share says at which part of the probes everything is there.
func (c *Cell) share() string {
	if c.Whole == c.Probes {
		return "100 %"
	}
	// Neither 0 nor 100 where it is not quite that.
	percent := 100 * float64(c.Whole) / float64(c.Probes)
	if c.Whole > 0 {
		percent = min(max(percent, 0.1), 99.9)
	}
	return fmt.Sprintf("%.1f %%", percent)
}

// remarks says what is lost, refused and changed.
func (c *Cell) remarks() (out []string) {
	for i := range c.Args {
		a := &c.Args[i]
		if len(a.Lost) > 0 {
			out = append(out, fmt.Sprintf("%s lost at %s", a.Name, countsText(a.Lost)))
		}
	}
	if len(c.Refused) > 0 {
		out = append(out, "no probe at "+countsText(c.Refused))
	}
	for _, text := range c.Changed {
		out = append(out, "changed: "+text)
	}
	if out == nil {
		out = []string{"ok"}
	}
	return out
}

func countsText(counts map[string]int) string {
	var parts []string
	for _, k := range order.LargestFirst(counts) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[k], k))
	}
	return strings.Join(parts, ", ")
}

// JSON prints a line for each definition and kernel.
func (t *Table) JSON(w io.Writer, r Requirement) error {
	for i := range t.Definitions {
		d := &t.Definitions[i]
		for k := range d.Cells {
			c := &d.Cells[k]
			kernel := t.kernel(c.Kernel)
			err := jsonline.Write(w, struct {
				Definition string `json:"definition"`
				Program    string `json:"program,omitempty"`
				Image      string `json:"image"`
				BuildID    string `json:"build_id"`
				Arch       string `json:"arch"`
				*Cell
				Met bool `json:"met"`
			}{d.Text, d.Program, kernel.Path, kernel.BuildID, kernel.Arch, c, r.Met(c)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Table) kernel(name string) *Kernel {
	for i := range t.Kernels {
		if t.Kernels[i].Name == name {
			return &t.Kernels[i]
		}
	}
	return nil
}

var (
	//go:embed html/check.html
	htmlBody string
	//go:embed html/check.js
	htmlScript string
)

type (
	htmlTable struct {
		Kernels     []htmlKernel     `json:"kernels"`
		Definitions []htmlDefinition `json:"definitions"`
		Require     string           `json:"require"`
	}
	htmlKernel struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	htmlDefinition struct {
		Text  string              `json:"text"`
		Cells map[string]htmlCell `json:"cells"` // by kernel
	}
	htmlCell struct {
		Met     bool     `json:"met"`
		Share   string   `json:"share"`
		Sites   string   `json:"sites"`
		Remarks []string `json:"remarks"`
	}
)

// HTML writes the table as a page for a browser, which needs nothing else: a click on a cell says what is behind it.
func (t *Table) HTML(w io.Writer, r Requirement) error {
	out := htmlTable{Kernels: []htmlKernel{}, Definitions: []htmlDefinition{}, Require: terminal.Text(r.text)}
	for i := range t.Kernels {
		k := &t.Kernels[i]
		out.Kernels = append(out.Kernels, htmlKernel{terminal.Text(k.Name), terminal.Text(strings.Join([]string{k.Arch, k.Path, "build ID " + k.BuildID}, " · "))})
	}
	for i := range t.Definitions {
		d := &t.Definitions[i]
		x := htmlDefinition{Text: terminal.Text(d.Text + programText(d)), Cells: make(map[string]htmlCell)}
		for k := range d.Cells {
			c := &d.Cells[k]
			cell := htmlCell{Met: r.Met(c), Sites: c.sites(), Share: "none"}
			remarks := []string{c.Error}
			if c.Error == "" {
				cell.Share, remarks = c.share(), c.remarks()
			}
			if c.Candidates != "" {
				remarks = append(remarks, "works here: "+c.Candidates)
			}
			for _, text := range remarks {
				cell.Remarks = append(cell.Remarks, terminal.Text(text))
			}
			x.Cells[terminal.Text(c.Kernel)] = cell
		}
		out.Definitions = append(out.Definitions, x)
	}
	return page.Write(w, &page.Page{Title: "Definitions on kernels", Body: htmlBody, Script: htmlScript, Data: &out})
}
