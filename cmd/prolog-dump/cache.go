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

// userCache returns the directory where the tool keeps indexes: BPFPROLOGUE_CACHE, which the user has
// chosen, or bpfprologue in the user's cache directory. It is "" if there is neither.
func userCache() (dir string, chosen bool) {
	if dir := os.Getenv("BPFPROLOGUE_CACHE"); dir != "" {
		return dir, true
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "bpfprologue"), false
}

func cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List or clear the kept indexes of images",
		Long: `The index of an image, by its build ID, is kept in the user's cache directory
(or in the directory BPFPROLOGUE_CACHE), so that the next question about the image
is answered without a scan. It is safe to delete at any time. The directory must be the
user's own, and nobody else may write to it; otherwise it is not used. Images that
others can write to have no index.`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the kept indexes, the one used last first", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				dir, _ := userCache()
				list, err := index.ListKept(dir)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, k := range list {
					used := "used"
					if k.Unfinished {
						used = "unfinished, written to" // or left by a process that was killed: the next one removes it
					}
					terminal.Fprintf(w, "%s\t%d bytes\t%s %s\n", k.Key, k.Size, used, k.Used.Format(time.DateTime))
				}
				return w.Flush()
			},
		},
		&cobra.Command{
			Use: "clear", Short: "Remove all kept indexes", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				dir, _ := userCache()
				return index.ClearKept(dir)
			},
		},
	)
	return cmd
}
