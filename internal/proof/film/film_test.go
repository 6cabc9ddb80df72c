package film_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/film"
)

func TestSVG(t *testing.T) {
	svg := film.SVG("a & b", 20, []film.Step{
		{Note: "first", Command: "echo '<x>'", Output: "<x>\n\n  two &amp;\n"},
		{Command: "second", Output: strings.Repeat("long ", 5) + "\n"},
	})
	got, err := film.Texts(svg)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"# first", "$ echo '<x>'", "<x>", "  two &amp;", "$ second", "long long long long…"}
	if !slices.Equal(got, want) {
		t.Errorf("it shows %q, not %q", got, want)
	}
	if !strings.Contains(svg, `<text class="n" `) {
		t.Error("at first there is nothing to see")
	}
	for _, bad := range []string{"<script", "http:", "https:", "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(svg, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("%s is in the image", bad)
		}
	}
}
