package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes man pages, from what --help prints.
func manCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man page of each verb into a directory",
		Example: `  prolog-dump man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // so that the same tool writes the same pages
			verbatim(root)
			return writePages(root, args[0])
		},
	}, nil)
}

func writePages(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || !cmd.IsAvailableCommand() && cmd.HasParent() {
		return nil
	}
	f, err := os.Create(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
	if err != nil {
		return err
	}
	defer f.Close()
	header := &doc.GenManHeader{Section: "1", Source: "prolog-dump " + cmd.Root().Version, Manual: "bpfprologue"}
	if err := doc.GenMan(cmd, header, f); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return f.Close()
}

// verbatim makes texts for --help good for a page: the generator reads Markdown, in which a name with an
// asterisk or an underscore is something else, and indented lines after a line of text are not a list.
func verbatim(cmd *cobra.Command) {
	var b strings.Builder
	before := false // a line that is indented
	for line := range strings.Lines(cmd.Long) {
		indented := strings.HasPrefix(line, "    ")
		if indented && !before {
			b.WriteByte('\n')
		}
		if !indented {
			line = strings.NewReplacer("*", `\*`, "_", `\_`, "[", `\[`, "<", `\<`, "`", "\\`").Replace(line)
		}
		b.WriteString(line)
		before = indented
	}
	cmd.Long = b.String()
	for _, c := range cmd.Commands() {
		verbatim(c)
	}
}
