package export_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/export"
	"github.com/bpfprologue/bpfprologue/internal/nametest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// page returns the page of a definition.
func page(t *testing.T, img *dwarfloc.Image, text string) string {
	t.Helper()
	def, err := probe.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(t.Context(), img, def, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := export.HTML(&b, p, func(*plan.Site) (string, string) { return "", "jump" }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHTML uses the page in a browser: what a person does is done by a script that is added to it, which
// writes down what is seen then.
func TestHTML(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	const drive = `<script>
const seen = [], see = what => seen.push(what + ": " + [...document.querySelectorAll("tr.site")].map(r => r.cells[0].textContent + " " + r.cells[3].textContent).join(" | ") + " # " + document.getElementById("count").textContent);
const type = (id, text) => { const e = document.getElementById(id); e.value = text; e.dispatchEvent(new Event("input")); };
see("all");
document.querySelector(".bar button[data-reason=optimized-out]").click(); see("reason");
document.getElementById("reset").click(); see("reset");
type("find", "RDI my_func"); see("find");
type("find", ""); type("kind", "entry"); see("entries");
type("kind", ""); type("state", "missing"); see("missing");
document.getElementById("reset").click();
document.querySelectorAll("th")[3].click(); see("sorted");
document.querySelectorAll("tr.site")[0].click(); seen.push("detail: " + document.querySelector("td.detail").innerText);
document.querySelectorAll("tr.site")[0].click(); seen.push("details: " + document.querySelectorAll("td.detail").length);
document.body.innerText = seen.join("\n");
</script></body>`
	out := testenv.Browser(t, strings.Replace(page(t, img, "my_func_three_abcd arg1"), "</body>", drive, 1))
	for _, want := range []string{
		"all: my_func_three_abcd %rdx | call_my_funcs+0x3a %rdi | call_my_funcs+0x3e (%rcx + %r8) + %r9 | call_my_funcs+0x45 optimized-out # 4 of 4 probes\n",
		"reason: call_my_funcs+0x45 optimized-out # 1 of 4 probes\n",
		"reset: my_func_three_abcd %rdx | call",
		"find: call_my_funcs+0x3a %rdi # 1 of 4 probes\n",
		"entries: my_func_three_abcd %rdx # 1 of 4 probes\n",
		"missing: call_my_funcs+0x45 optimized-out # 1 of 4 probes\n",
		"sorted: call_my_funcs+0x3e (%rcx + %r8) + %r9 | ",
		"inlined into", "call_my_funcs at queue.c:53", "instance 2, of 1 probe", "details: 0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// TestHTMLHostile: a name that looks like the end of the script, or like an element, is a text.
func TestHTMLHostile(t *testing.T) {
	data, err := fixtures.Bytes("basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	const evil = "</script><img>"
	if data, err = nametest.Hostile(data, evil); err != nil {
		t.Fatal(err)
	}
	img, err := dwarfloc.FromBytes("hostile", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := page(t, img, "* $params")
	if n := strings.Count(text, "</script>"); n != 1 || strings.Contains(text, "<img") || !strings.Contains(text, `\u003cimg`) {
		t.Errorf("%d ends of scripts", n)
	}
}

// TestHTMLLarge: the page of more sites than it has room for counts all, and has some of them, with their instances.
func TestHTMLLarge(t *testing.T) {
	img := testenv.Fixture(t, "basic-gcc12-O2-dwarf5.elf")
	def, err := probe.Parse("my_func_* $params")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(t.Context(), img, def, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for len(p.Sites) < 100_000 {
		p.Sites = append(p.Sites, p.Sites...)
	}
	var b bytes.Buffer
	if err := export.HTML(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	rows := strings.Count(b.String(), `"place":`)
	if all := fmt.Sprintf(`"probes":%d,`, len(p.Sites)); b.Len() > 20_000_000 || b.Len() < 8_000_000 || rows >= len(p.Sites) || !strings.Contains(b.String(), all) {
		t.Errorf("%d bytes, %d of %d rows", b.Len(), rows, len(p.Sites))
	}
	if out := testenv.Browser(t, b.String()); !strings.Contains(out, fmt.Sprintf("the table has %d of %d, chosen evenly", rows, len(p.Sites))) {
		t.Errorf("the page does not say what it leaves out")
	}
}
