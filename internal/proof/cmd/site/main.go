// Command site makes a static site of the documentation: the pages of docs/ and those beside the README, the packages' comments, and a
// report as a live example. A link that leads nowhere is an error, and so is anything that a reader's browser would fetch from elsewhere.
//
//	go run ./internal/proof/cmd/site DIR
package main

import (
	_ "embed"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

const (
	module     = "github.com/bpfprologue/bpfprologue"
	repository = "https://" + module
)

var (
	//go:embed mkdocs.yml
	frame string
	//go:embed site.css
	style string
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: site DIR")
	}
	out, err := filepath.Abs(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	n, err := build(".", out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d pages, %d links, 0 dead\n", filepath.Join(os.Args[1], "index.html"), n.pages, n.links)
}

// build makes the site of the repository at root.
func build(root, out string) (checked, error) {
	work, err := os.MkdirTemp("", "site")
	if err != nil {
		return checked{}, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	s := &stage{root: root, dir: filepath.Join(work, "pages")}
	if err := s.lay(); err != nil {
		return checked{}, err
	}
	config := filepath.Join(work, "mkdocs.yml")
	if err := os.WriteFile(config, []byte(frame+s.nav()), 0o600); err != nil {
		return checked{}, err
	}
	c := exec.Command("mkdocs", "build", "--quiet", "--strict", "--clean", "-f", config, "-d", out)
	if text, err := c.CombinedOutput(); err != nil {
		return checked{}, fmt.Errorf("mkdocs: %w\n%s", err, text)
	}
	return check(out)
}

// nav returns the list of pages.
func (s *stage) nav() string {
	var b strings.Builder
	b.WriteString("nav:\n")
	section := func(title string, pages []string) {
		fmt.Fprintf(&b, "  - %s:\n", title)
		for _, p := range pages {
			fmt.Fprintf(&b, "    - %s\n", p)
		}
	}
	b.WriteString("  - Home: index.md\n")
	section("Use", s.with("docs/walk.md", "docs/cookbook.md", "docs/bpftrace.md", "docs/definitions.md", "docs/packs.md", "docs/fleet.md", "docs/json.md", "AGENTS.md", "report.md", "docs/limits.md"))
	section("Build on it", s.with("docs/library.md", "docs/performance.md", "docs/design.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))
	var rest, api []string
	for _, p := range s.pages {
		switch {
		case strings.HasPrefix(p, "api/"):
			api = append(api, p)
		case p != "index.md" && !s.named[p]:
			rest = append(rest, p)
		}
	}
	section("More", rest)
	section("Packages", api)
	return b.String()
}

// with returns those of the pages that exist.
func (s *stage) with(pages ...string) []string {
	for _, p := range pages {
		s.named[p] = true
	}
	return slices.DeleteFunc(pages, func(p string) bool { return !slices.Contains(s.pages, p) })
}

// report makes the page of the example.
func (s *stage) report() error {
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	image, err := fixtures.WriteTo(dir, "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		return err
	}
	tool := exec.Command("go", "build", "-o", dir, "./cmd/prolog-dump")
	tool.Dir = s.root
	c := exec.Command("./prolog-dump", "report", "--no-cache", "-k", filepath.Base(image), "-o", filepath.Join(s.dir, "example.html"), "my_func_*_abcd arg1")
	c.Dir = dir // the page names the image as the command does
	for _, c := range []*exec.Cmd{tool, c} {
		if text, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", c, err, text)
		}
	}
	return s.write("report.md", `# A report

`+"`prolog-dump report`"+` writes one file for a browser, which needs no network. This is one, of the small image that `+"`prolog-dump demo`"+` looks at too:
click on a part of a bar, or on a site. [Open it alone](example.html).

`+"```"+`
prolog-dump report -k basic-gcc12-O2-dwarf5.elf 'my_func_*_abcd arg1' -o example.html
`+"```"+`

<iframe class="example" src="example.html" title="The report"></iframe>
`)
}
