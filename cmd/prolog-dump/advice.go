package main

import (
	"errors"

	"github.com/bpfprologue/bpfprologue/sites"
)

// advice returns what a user of the tool can do about an error of the library, which does
// not know the tool's flags, or "".
func advice(err error) string {
	var source *sites.NoSourceError
	switch {
	case errors.As(err, &source):
		return "name the directory with the sources: --source DIR"
	}
	return ""
}
