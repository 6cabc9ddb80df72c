package main

import (
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/terminal"
)

// userCache returns the directory where the tool keeps indexes: BPFPROLOGUE_CACHE, or
// bpfprologue in the user's cache directory. It is "" if there is neither.
func userCache() string {
	if dir := os.Getenv("BPFPROLOGUE_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "bpfprologue")
}

func cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List or clear the kept indexes of images",
		Long: `The index of an image, by its build ID, is kept in the user's cache directory
(or in the directory BPFPROLOGUE_CACHE), so that the next question about the image
is answered without a scan. It is safe to delete at any time.`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the kept indexes, the one used last first", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				list, err := index.ListKept(userCache())
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, k := range list {
					terminal.Fprintf(w, "%s\t%d bytes\tused %s\n", k.Key, k.Size, k.Used.Format(time.DateTime))
				}
				return w.Flush()
			},
		},
		&cobra.Command{
			Use: "clear", Short: "Remove all kept indexes", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return index.ClearKept(userCache()) },
		},
	)
	return cmd
}
