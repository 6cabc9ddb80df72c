package packfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// An archive is many packs in one file, each as it would be alone, and an index by build ID before them:
//
//	magic, 8 bytes; version, 4; number of packs, 4; CRC-32C of the index, 4; 0, 4
//	for each pack, by build ID: build ID, 32 bytes, padded with zeros; its length, 4; 0, 4; offset, 8; size, 8
//	the packs, each from a multiple of 4,096 bytes on

const (
	archiveMagic   = "bpfpacks"
	archiveVersion = 1
	archiveHead    = 24
	archiveEntry   = 56
	maxBuildID     = 32
	archiveAlign   = 4096
)

// Archive is an open archive.
type Archive struct {
	path string
	d    []byte
	n    int
}

// IsArchive reports whether a file is an archive.
func IsArchive(data []byte) bool { return bytes.HasPrefix(data, []byte(archiveMagic)) }

// OpenArchive reads an archive's index. data must not change while it is used; errors give path.
func OpenArchive(data []byte, path string) (*Archive, error) {
	le := binary.LittleEndian
	a := &Archive{path: path, d: data}
	if !IsArchive(data) || len(data) < archiveHead {
		return nil, a.errorf(0, "it is no archive of packs")
	}
	if v := le.Uint32(data[8:]); v != archiveVersion {
		return nil, fmt.Errorf("%s: the archive has version %d of the format, and this program reads version %d", path, v, archiveVersion)
	}
	a.n = int(le.Uint32(data[12:]))
	if a.n > (len(data)-archiveHead)/archiveEntry {
		return nil, a.errorf(12, "an index of %d packs does not fit into the file", a.n)
	}
	index := data[archiveHead : archiveHead+a.n*archiveEntry]
	if sealed.Sum(index) != le.Uint32(data[16:]) {
		return nil, a.errorf(16, "the checksum of the index is wrong")
	}
	for i := range a.n {
		e := a.entry(i)
		off, size := le.Uint64(e[40:]), le.Uint64(e[48:])
		if le.Uint32(e[maxBuildID:]) > maxBuildID || off > uint64(len(data)) || size > uint64(len(data))-off {
			return nil, a.errorf(archiveHead+i*archiveEntry, "a pack is outside the file")
		}
		if i > 0 && bytes.Compare(a.entry(i - 1)[:maxBuildID], e[:maxBuildID]) >= 0 {
			return nil, a.errorf(archiveHead+i*archiveEntry, "the index is not sorted")
		}
	}
	return a, nil
}

func (a *Archive) errorf(off int, format string, args ...any) error {
	return fmt.Errorf("%s+%#x: %w: %s", a.path, off, ErrDamaged, fmt.Sprintf(format, args...))
}

func (a *Archive) entry(i int) []byte { return a.d[archiveHead+i*archiveEntry:][:archiveEntry] }

// BuildIDs returns the build IDs of all packs in hexadecimal, sorted.
func (a *Archive) BuildIDs() []string {
	out := make([]string, a.n)
	for i := range out {
		e := a.entry(i)
		out[i] = hex.EncodeToString(e[:binary.LittleEndian.Uint32(e[maxBuildID:])])
	}
	return out
}

// Find returns the pack of the image with a build ID in hexadecimal, or nil: it is a whole file.
func (a *Archive) Find(buildID string) []byte {
	id, err := hex.DecodeString(buildID)
	if err != nil || len(id) == 0 || len(id) > maxBuildID {
		return nil
	}
	want := make([]byte, maxBuildID)
	copy(want, id)
	i := sort.Search(a.n, func(i int) bool { return bytes.Compare(a.entry(i)[:maxBuildID], want) >= 0 })
	if i == a.n || !bytes.Equal(a.entry(i)[:maxBuildID], want) || int(binary.LittleEndian.Uint32(a.entry(i)[maxBuildID:])) != len(id) {
		return nil
	}
	off, size := binary.LittleEndian.Uint64(a.entry(i)[40:]), binary.LittleEndian.Uint64(a.entry(i)[48:])
	return a.d[off : off+size : off+size]
}

// Archived is a pack that goes into an archive.
type Archived struct {
	BuildID string // in hexadecimal
	Data    []byte
}

// WriteArchive writes an archive. Its bytes do not depend on the order of the packs.
func WriteArchive(w io.Writer, packs []Archived) error {
	packs = slices.Clone(packs)
	sort.Slice(packs, func(i, j int) bool { return packs[i].BuildID < packs[j].BuildID })
	le := binary.LittleEndian
	align := func(n int) int { return (n + archiveAlign - 1) / archiveAlign * archiveAlign }
	at := align(archiveHead + len(packs)*archiveEntry)
	var index []byte
	for i := range packs {
		id, err := hex.DecodeString(packs[i].BuildID)
		switch {
		case err != nil || len(id) == 0 || len(id) > maxBuildID:
			return fmt.Errorf("the build ID %q is not one of 1 to %d bytes", packs[i].BuildID, maxBuildID)
		case i > 0 && packs[i-1].BuildID == packs[i].BuildID:
			return fmt.Errorf("two packs have the build ID %s", packs[i].BuildID)
		}
		e := make([]byte, archiveEntry)
		copy(e, id)
		le.PutUint32(e[maxBuildID:], uint32(len(id)))
		le.PutUint64(e[40:], uint64(at))
		le.PutUint64(e[48:], uint64(len(packs[i].Data)))
		index = append(index, e...)
		at = align(at + len(packs[i].Data))
	}
	head := make([]byte, archiveHead, archiveHead+len(index))
	copy(head, archiveMagic)
	le.PutUint32(head[8:], archiveVersion)
	le.PutUint32(head[12:], uint32(len(packs)))
	le.PutUint32(head[16:], sealed.Sum(index))
	pad := func(n int) []byte { return make([]byte, align(n)-n) }
	head = append(head, index...)
	for _, b := range [][]byte{head, pad(len(head))} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	for i := range packs {
		for _, b := range [][]byte{packs[i].Data, pad(len(packs[i].Data))} {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}
