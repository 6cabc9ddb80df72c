package pack

import (
	"fmt"
	"io"

	"github.com/bpfprologue/bpfprologue/internal/image"
	"github.com/bpfprologue/bpfprologue/internal/packfile"
)

// Archive is many packs in one file, each as it would be alone.
type Archive struct{ a *packfile.Archive }

// OpenArchive reads the index of an archive. data must not change while it is used; errors give path.
func OpenArchive(data []byte, path string) (*Archive, error) {
	a, err := packfile.OpenArchive(data, path)
	if err != nil {
		return nil, err
	}
	return &Archive{a}, nil
}

// BuildIDs returns the build IDs of the images of all packs in hexadecimal, sorted.
func (a *Archive) BuildIDs() []string { return a.a.BuildIDs() }

// Find returns the pack of the image with a build ID in hexadecimal, as the contents of a file, or nil.
func (a *Archive) Find(buildID string) []byte { return a.a.Find(buildID) }

// WriteArchive writes an archive of packs, which are the contents of files; paths are what errors name. Its bytes do not depend
// on their order.
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
