package main

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// checked counts what was looked at.
type checked struct{ pages, links int }

var (
	identifier = regexp.MustCompile(`\s(?:id|name)="([^"]+)"`)
	reference  = regexp.MustCompile(`<([a-z]+)[^>]*?\s(href|src)=(?:"([^"]*)"|([^\s>]+))`)
	script     = regexp.MustCompile(`(?s)<script\b.*?</script>`)
)

// check looks at each link of a site on disk: files and fragments exist, and only what a reader follows leads elsewhere.
func check(dir string) (checked, error) {
	var n checked
	pages := make(map[string]string)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		pages[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		return n, err
	}
	ids := make(map[string]map[string]bool)
	for name, text := range pages {
		ids[name] = map[string]bool{"": true}
		for _, m := range identifier.FindAllStringSubmatch(text, -1) {
			ids[name][html.UnescapeString(m[1])] = true
		}
	}
	var dead []error
	for name, text := range pages {
		n.pages++
		for _, m := range reference.FindAllStringSubmatch(script.ReplaceAllString(text, ""), -1) {
			n.links++
			to, err := url.Parse(html.UnescapeString(m[3] + m[4]))
			switch {
			case err != nil:
			case to.Scheme == "data" || to.Scheme == "mailto":
				continue
			case to.Host != "" && m[1] == "a":
				continue
			case to.Host != "":
				err = errors.New("it is fetched from elsewhere")
			default:
				err = found(dir, name, to, ids)
			}
			if err != nil {
				dead = append(dead, fmt.Errorf("%s: %s: %w", name, m[3]+m[4], err))
			}
		}
	}
	if n.pages < 20 {
		dead = append(dead, fmt.Errorf("only %d pages", n.pages))
	}
	return n, errors.Join(dead...)
}

// found reports whether a file, and the fragment of a page, exist.
func found(dir, from string, to *url.URL, ids map[string]map[string]bool) error {
	target := from
	if to.Path != "" {
		target = path.Join(path.Dir(from), to.Path)
	}
	if strings.HasSuffix(to.Path, "/") || to.Path == "." || to.Path == ".." {
		target = path.Join(target, "index.html")
	}
	if _, err := os.Stat(filepath.Join(dir, target)); err != nil {
		return errors.New("there is no such file")
	}
	if known := ids[target]; known != nil && !known[to.Fragment] && !strings.HasPrefix(to.Fragment, "__") {
		return fmt.Errorf("%s has no %q", target, to.Fragment)
	}
	return nil
}
