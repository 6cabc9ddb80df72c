package packfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// A delta makes one pack of another. It is a section as a pack is, in a file of its own: which packs they are, and
// the new one with pages that are not compressed, as a zstd frame that begins with the old one in such a form.

// DeltaVersion is the version of deltas that this package writes and reads.
const DeltaVersion = 1

// errDamagedDelta is wrapped by errors about a delta that is damaged.
var errDamagedDelta = errors.New("the delta is damaged")

var deltaKind = sealed.Kind{
	Magic: "bpfdelta", Version: DeltaVersion, Section: "delta", What: "the delta", Damaged: errDamagedDelta, Mapped: true, Parts: []string{"build IDs", "change"},
}

const (
	deltaIDs = iota // two texts, each after its length (v): build IDs
	deltaChange
)

// Offsets in the header.
const (
	atOldSum    = sealed.AtFacts // 32: SHA-256 of the old pack
	atNewSum    = atOldSum + 32  // 32: and of the new one
	atLooseSize = atNewSum + 32  // 8: of the new one in its loose form
	atBefore    = atLooseSize + 8
	// 8: how many bytes that has before the section
)

// WrongPackError is the error for a delta and a pack that is not the one it is for.
type WrongPackError struct {
	Path, Delta string // files
	Have, Want  string // build IDs of the images that the pack is of, and that of the one that the delta is for
}

func (e *WrongPackError) Error() string {
	if e.Have == e.Want {
		return fmt.Sprintf("%s: %s is for another pack of the image with build ID %s", e.Path, e.Delta, e.Want)
	}
	return fmt.Sprintf("%s: it is a pack of the image with build ID %s, and %s is for that of %s", e.Path, e.Have, e.Delta, e.Want)
}

// loosen returns a whole pack with pages that are not compressed: what is before the section, its header, the parts, what
// is after it. before is how many bytes there are before the section.
func loosen(file []byte, path string) (loose []byte, before int, err error) {
	_, at, err := find(file, path)
	if err != nil {
		return nil, 0, err
	}
	f, err := Open(file[at.from:at.to], path)
	if err != nil {
		return nil, 0, err
	}
	parts, err := f.own.Bytes(sealed.HeaderSize, f.own.Size())
	if err != nil {
		return nil, 0, err
	}
	return bytes.Join([][]byte{file[:at.from], f.own.Header(), parts, file[at.to:]}, nil), int(at.from), nil
}

// tighten is loosen the other way. The result has to be checked.
func tighten(loose []byte, before int) ([]byte, bool) {
	if before < 0 || before > len(loose)-sealed.HeaderSize {
		return nil, false
	}
	head := loose[before:][:sealed.HeaderSize]
	at := before + sealed.HeaderSize
	var parts []sealed.Data
	for i := range kind.Parts {
		size, n := int(binary.LittleEndian.Uint32(head[sealed.AtParts+8*i:])), int(binary.LittleEndian.Uint32(head[sealed.AtParts+8*i+4:]))
		if size > len(loose)-at {
			return nil, false
		}
		parts = append(parts, sealed.Data{Bytes: loose[at : at+size], Records: n})
		at += size
	}
	return bytes.Join([][]byte{loose[:before], kind.Assemble(head[sealed.AtFacts:sealed.AtParts], parts), loose[at:]}, nil), true
}

// Image is a whole pack, as arguments of Delta and Apply.
type Image struct {
	Data    []byte
	Path    string // for errors
	BuildID string // of the image
}

// Delta returns what makes to of from. It tries that.
func Delta(from, to Image) ([]byte, error) {
	before, _, err := loosen(from.Data, from.Path)
	if err != nil {
		return nil, err
	}
	after, at, err := loosen(to.Data, to.Path)
	if err != nil {
		return nil, err
	}
	// A window as long as both has all of the old pack for each byte of the new one.
	window := zstd.MinWindowSize
	for window < len(before)+len(after) {
		window *= 2
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(min(window, zstd.MaxWindowSize)),
		zstd.WithEncoderDictRaw(1, before))
	if err != nil {
		return nil, err
	}
	change := e.EncodeAll(after, nil)
	head := make([]byte, sealed.AtParts)
	old, sum := sha256.Sum256(from.Data), sha256.Sum256(to.Data)
	copy(head[atOldSum:], old[:])
	copy(head[atNewSum:], sum[:])
	binary.LittleEndian.PutUint64(head[atLooseSize:], uint64(len(after)))
	binary.LittleEndian.PutUint64(head[atBefore:], uint64(at))
	var ids []byte
	for _, id := range []string{from.BuildID, to.BuildID} {
		ids = append(binary.AppendUvarint(ids, uint64(len(id))), id...)
	}
	d := deltaKind.Assemble(head[sealed.AtFacts:], []sealed.Data{deltaIDs: {Bytes: ids, Records: 2}, deltaChange: {Bytes: change, Records: 1}})
	again, err := Apply(from, d, to.Path)
	if err == nil && !bytes.Equal(again, to.Data) {
		err = fmt.Errorf("%s: the pack is not as this program writes it: make it anew", to.Path)
	}
	return d, err
}

// maxRatioOfDelta bounds a pack by what it is made of: as package sealed does what is compressed.
const maxRatioOfDelta = 100

// Apply returns the new pack that a delta makes of the old one. Errors name path as the delta's.
func Apply(from Image, delta []byte, path string) ([]byte, error) {
	f, err := deltaKind.Open(delta, path)
	if err != nil {
		return nil, err
	}
	p := f.Part(deltaIDs)
	ids, err := f.Bytes(p.From, p.To)
	if err != nil {
		return nil, err
	}
	b := bin.Reader{D: ids}
	wanted := string(b.Bytes(b.ULEB()))
	if b.Bad {
		return nil, f.Errorf(p.From, "build IDs are cut short")
	}
	head := f.Header()
	if sum := sha256.Sum256(from.Data); !bytes.Equal(sum[:], head[atOldSum:atOldSum+sha256.Size]) {
		return nil, &WrongPackError{from.Path, path, from.BuildID, wanted}
	}
	before, _, err := loosen(from.Data, from.Path)
	if err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(head[atLooseSize:])
	if size > maxRatioOfDelta*uint64(len(before)+len(delta)) {
		return nil, f.Errorf(atLooseSize, "the new pack would have %d bytes", size)
	}
	p = f.Part(deltaChange)
	change, err := f.Bytes(p.From, p.To)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(max(size, 1)), zstd.WithDecoderMaxWindow(zstd.MaxWindowSize),
		zstd.WithDecoderDictRaw(1, before))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	after, err := d.DecodeAll(change, nil)
	if err != nil || uint64(len(after)) != size {
		return nil, f.Errorf(p.From, "it cannot be decompressed to %d bytes: %v", size, err)
	}
	file, ok := tighten(after, int(binary.LittleEndian.Uint64(head[atBefore:])))
	if !ok {
		return nil, f.Errorf(atBefore, "the new pack has no section there")
	}
	if sum := sha256.Sum256(file); !bytes.Equal(sum[:], head[atNewSum:atNewSum+sha256.Size]) {
		return nil, fmt.Errorf("%s: %s: the pack that it makes is not the one that was meant: another version of this program wrote it; take the pack itself", from.Path, path)
	}
	return file, nil
}
