package main

import (
	"cmp"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/bpfprologue/bpfprologue/internal/index"
	"github.com/bpfprologue/bpfprologue/internal/listing"
	"github.com/bpfprologue/bpfprologue/internal/origin"
	"github.com/bpfprologue/bpfprologue/internal/screen"
)

func cacheCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List or clear the kept indexes of images",
		Long: `The index of an image, by its build ID, is kept in the user's cache directory
(or in the directory BPFPROLOGUE_CACHE), so that the next question about the image
is answered without a scan. It is safe to delete at any time. The directory must be the
user's own, and nobody else may write to it; otherwise it is not used. Images that
others can write to have no index.`,
	}
	list := &cobra.Command{
		Use: "list", Short: "List the kept indexes, the one used last first", Example: "  prolog-dump cache list", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, _ := origin.CacheDir()
			list, err := index.ListKept(dir)
			if err != nil {
				return err
			}
			return s.printKept(cmd.OutOrStdout(), list)
		},
	}
	s.use(list, textOrJSON, answerFlags...)
	cmd.AddCommand(list, &cobra.Command{
		Use: "clear", Short: "Remove all kept indexes", Example: "  prolog-dump cache clear", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, _ := origin.CacheDir()
			return index.ClearKept(dir)
		},
	})
	return cmd
}

// keptJSON is a kept index.
type keptJSON struct {
	Key        string    `json:"key"`            // the build ID of the image
	Path       string    `json:"path,omitempty"` // where it was when it was scanned
	Bytes      int64     `json:"bytes"`
	Used       time.Time `json:"used"`
	Unfinished bool      `json:"unfinished,omitempty"` // or left by a process that was killed: the next one removes it
}

func (s *settings) printKept(w io.Writer, list []index.KeptFile) error {
	object := func(k *index.KeptFile) any { return keptJSON{k.Key, k.Path, k.Size, k.Used, k.Unfinished} }
	return listing.Table(w, s.view(), list, object, func(k *index.KeptFile) []any {
		used := "used"
		if k.Unfinished {
			used = "unfinished, written to"
		}
		return []any{s.Styled(screen.RolePlace, k.Key), strconv.FormatInt(k.Size, 10) + " bytes", used + " " + k.Used.Format(time.DateTime), cmp.Or(k.Path, "?")}
	})
}
