package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/manpage"
)

// manCommand writes man pages, from what --help prints.
func manCommand(s *settings) *cobra.Command {
	return s.use(&cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man page of each verb into a directory",
		Example: `  prolog-dump man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return writePages(cmd.Root(), args[0]) },
	}, nil)
}

func writePages(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || !cmd.IsAvailableCommand() && cmd.HasParent() {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), manPage(cmd), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if err := writePages(c, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a verb's page.
func manPage(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	release, _, _ := strings.Cut(cmd.Root().Version, ",") // pages are the same on all architectures
	p := manpage.Page{
		Name: pageName(cmd), Release: release, About: cmd.Short, Use: cmd.UseLine(), Text: cmp.Or(cmd.Long, cmd.Short),
		Own: cmd.NonInheritedFlags(), Inherited: cmd.InheritedFlags(), Example: cmd.Example,
	}
	if cmd.HasParent() {
		p.Others = append(p.Others, pageName(cmd.Parent())+"(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			p.Others = append(p.Others, pageName(c)+"(1)")
		}
	}
	if !cmd.HasParent() {
		p.Others = append(p.Others, "prolog-dump-definitions(7)") // scripts/man-definitions
	}
	return p.Bytes()
}
