package witness

import (
	"encoding/binary"
	"hash/fnv"
	"path"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/entries"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// functionKey tells functions apart: the bodies of one are in many units. What a template is made for, and the members of classes, differ in their
// linkage names.
type functionKey struct {
	name, linkage string
	dir, file     string // dir is that of the compilation, if file is relative
	line          uint64
}

// functionOf returns the function of a record.
func functionOf(u *entries.Unit, rec int32) (k functionKey, err error) {
	r := &u.Recs[rec]
	k.name = u.Index.NameOf(u.NameRefOf(r))
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
		k.linkage, err = symbolName(e)
	}
	return k, err
}

// symbolName returns the name of a function's symbol.
func symbolName(e dw.Entry) (string, error) {
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

// hash returns a number that is the same for equal keys.
func (k *functionKey) hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(k.pack(nil))
	return h.Sum64()
}

func (k *functionKey) pack(b []byte) []byte {
	for _, text := range [...]string{k.name, k.linkage, k.dir, k.file} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return binary.AppendUvarint(b, k.line)
}
