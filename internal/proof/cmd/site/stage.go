package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stage is the directory with the pages, as mkdocs reads them. They lie there as in the repository, so that links between them hold.
type stage struct {
	root, dir string
	pages     []string
	named     map[string]bool
}

// lay writes all pages.
func (s *stage) lay() error {
	s.named = make(map[string]bool)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*.svg", "bench/*.md", "testdata/*/README.md"} {
		files, err := filepath.Glob(filepath.Join(s.root, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			name, err := filepath.Rel(s.root, f)
			if err != nil {
				return err
			}
			s.pages = append(s.pages, filepath.ToSlash(name))
		}
	}
	for _, name := range slices.Clone(s.pages) {
		data, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return err
		}
		text := string(data)
		if path.Ext(name) == ".md" {
			text = lists(s.relink(name, text))
		}
		if err := s.save(staged(name), text); err != nil {
			return err
		}
	}
	for i, p := range s.pages {
		s.pages[i] = staged(p)
	}
	s.pages = slices.DeleteFunc(s.pages, func(p string) bool { return path.Ext(p) != ".md" })
	if err := s.save("site.css", style); err != nil {
		return err
	}
	if err := s.packages(); err != nil {
		return err
	}
	return s.report()
}

// staged returns a page's name on the site.
func staged(name string) string {
	if name == "README.md" {
		return "index.md"
	}
	return name
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// relink lets links to files that are no pages lead to the repository.
func (s *stage) relink(name, text string) string {
	return link.ReplaceAllStringFunc(text, func(m string) string {
		target := m[2 : len(m)-1]
		file, fragment, _ := strings.Cut(target, "#")
		if file == "" || strings.Contains(target, "://") {
			return m
		}
		to := path.Join(path.Dir(name), file)
		if !slices.Contains(s.pages, to) {
			return "](" + repository + "/blob/main/" + to + ")"
		}
		if to != staged(to) {
			target = strings.TrimSuffix(file, "README.md") + "index.md"
			if fragment != "" {
				target += "#" + fragment
			}
		}
		return "](" + target + ")"
	})
}

// list is a list that follows text: GitHub needs no empty line between them, and the site does.
var list = regexp.MustCompile(`(?m)^([^\n|>#\-\s][^\n]*)\n(- |1\. )`)

func lists(text string) string {
	parts := strings.Split(text, "```") // what is in odd ones is code
	for i := 0; i < len(parts); i += 2 {
		parts[i] = list.ReplaceAllString(parts[i], "$1\n\n$2")
	}
	return strings.Join(parts, "```")
}

func (s *stage) write(name, text string) error {
	s.pages = append(s.pages, name)
	return s.save(name, text)
}

func (s *stage) save(name, text string) error {
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}
