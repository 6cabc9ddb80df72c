package entries

import (
	"encoding/binary"
	"hash/fnv"
	"path"

	"github.com/bpfprologue/bpfprologue/internal/bin"
	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// FunctionKey tells functions apart: the bodies of one are in many units. What a template is made for, and the members of classes, differ in their
// linkage names.
type FunctionKey struct {
	Name, linkage string
	dir, file     string // dir is that of the compilation, if file is relative
	line          uint64
}

// KeyOf returns the key of a record's function.
func KeyOf(u *Unit, rec int32) (k FunctionKey, err error) {
	r := &u.Recs[rec]
	k.Name = u.Index.NameOf(u.NameRefOf(r))
	e, err := u.Entry(u.Off + uint64(r.Off))
	if err != nil {
		return k, err
	}
	var file uint64
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrDeclFile:
			file = v.U
		case dw.AttrDeclLine:
			k.line = v.U
		}
	}, func() bool { return k.line == 0 })
	if err != nil {
		return k, err
	}
	if k.file = last.Unit.File(file); !path.IsAbs(k.file) {
		k.dir = last.Unit.CompDir()
	}
	if !dw.IsC(u.Lang) {
		k.linkage, err = SymbolName(e)
	}
	return k, err
}

// SymbolName returns the name of a function's symbol.
func SymbolName(e dw.Entry) (string, error) {
	var name, linkage dw.Value
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrName:
			name = v
		case dw.AttrLinkageName:
			linkage = v
		}
	}, func() bool { return linkage.Form == 0 && name.Form == 0 })
	if err != nil {
		return "", err
	}
	if linkage.Form != 0 {
		name = linkage
	}
	if name.Form == 0 {
		return "", nil
	}
	return last.Unit.Text(name), nil
}

// Hash returns a number that is the same for equal keys.
func (k *FunctionKey) Hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(k.Pack(nil))
	return h.Sum64()
}

// Pack appends the form that UnpackKey reads.
func (k *FunctionKey) Pack(b []byte) []byte {
	for _, text := range [...]string{k.Name, k.linkage, k.dir, k.file} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return binary.AppendUvarint(b, k.line)
}

// UnpackKey reads a key.
func UnpackKey(b *bin.Reader) (k FunctionKey) {
	for _, text := range [...]*string{&k.Name, &k.linkage, &k.dir, &k.file} {
		*text = string(b.Bytes(b.ULEB()))
	}
	k.line = b.ULEB()
	return k
}

// Match reports whether a function that has the key may have a name.
func (k *FunctionKey) Match(name string) bool { return name == k.Name }

// Literal returns the name.
func (k *FunctionKey) Literal() (string, bool) { return k.Name, true }
