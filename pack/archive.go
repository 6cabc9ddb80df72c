package pack

import (
	"fmt"
	"io"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// WriteArchive writes many packs into one file, each as it is alone; packs are the contents of files, and paths what errors name. The
// file's bytes do not depend on their order. Find looks into files that are called NAME.packs.
func WriteArchive(w io.Writer, packs [][]byte, paths []string) error {
	var all []packfile.Archived
	for i, d := range packs {
		f, err := image.FromBytes(paths[i], d, nil)
		if err != nil {
			return err
		}
		if _, err := packfile.Find(d, paths[i]); err != nil {
			return err
		}
		if f.BuildID() == "" {
			return fmt.Errorf("%s: it has no build ID, by which an archive could name it", paths[i])
		}
		all = append(all, packfile.Archived{BuildID: f.BuildID(), Data: d})
	}
	return packfile.WriteArchive(w, all)
}
