package main

import (
	"fmt"
	"strings"

	"github.com/bpfprologue/bpfprologue/sites"
)

// parseSources parses the values of --source: "DIR" or "PREFIX=DIR".
func parseSources(texts []string) (sites.Sources, error) {
	var out sites.Sources
	for _, t := range texts {
		d := sites.SourceDir{Dir: t}
		if prefix, dir, ok := strings.Cut(t, "="); ok {
			d = sites.SourceDir{Dir: dir, Prefix: prefix}
			if prefix == "" {
				return nil, fmt.Errorf("source directory %q: nothing before the \"=\"", t)
			}
		}
		if d.Dir == "" {
			return nil, fmt.Errorf("source directory %q: no directory", t)
		}
		out = append(out, d)
	}
	return out, nil
}
