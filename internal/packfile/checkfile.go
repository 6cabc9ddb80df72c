package packfile

import (
	"bytes"
	"encoding/binary"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/sealed"
)

// CheckRest checks the headers of the whole file, and all else that is neither .BTF nor the section, against the checksum
// that the section has of it: a reader takes addresses from there.
func (f *File) CheckRest(file []byte) error {
	types, pack, err := find(file, f.path)
	if err != nil {
		return err
	}
	if sealed.Sum(rest(file, types, pack)...) != binary.LittleEndian.Uint32(f.own.Header()[atRest:]) {
		return f.wrongSum(atRest, "the rest of the file")
	}
	return nil
}

func rest(file []byte, types, pack span) [][]byte {
	return [][]byte{file[:types.from], file[types.to:pack.from], file[pack.to:]}
}

func (f *File) wrongSum(at int, what string) error {
	return f.own.Errorf(at, "the checksum of %s is wrong", what)
}

// CheckFile checks the whole file, which the section is a part of, against the SHA-256 that the section has of the rest, and that
// the index of .BTF is the one it should be; and then all of the section, as Check does.
func (f *File) CheckFile(file []byte) error {
	types, pack, err := find(file, f.path)
	if err != nil {
		return err
	}
	head := f.own.Header()
	d := file[types.from:types.to]
	if sum := hash(rest(file, types, pack)...); !bytes.Equal(sum[:], head[atRest+4:atRest+36]) {
		return f.wrongSum(atRest, "the rest of the file")
	}
	if sum := hash(d); !bytes.Equal(sum[:], head[atBTF+4:atBTF+36]) {
		return f.wrongSum(atBTF, btfSection)
	}
	index, err := f.whole(partBTFIndex)
	if err != nil {
		return err
	}
	if right, err := btf.Index(d); err != nil || !bytes.Equal(index, right) {
		return f.own.Errorf(f.parts[partBTFIndex].From, "it is not that of %s (%v)", btfSection, err)
	}
	own, err := f.BTF(d, nil)
	if err != nil {
		return err
	}
	all := TypeID(own.Len())
	if f.facts.Types.Base {
		all += TypeID(f.facts.Types.BaseTypes) - 1 // void is counted once
	}
	return f.Check(all)
}

// whole returns all of a part.
func (f *File) whole(part int) ([]byte, error) {
	return f.own.Bytes(f.parts[part].From, f.parts[part].To)
}

// BTF returns the types of a pack: section is the contents of .BTF, and base what they follow, or nil. Of the section nothing is
// read but what is asked for, and that is checked then.
func (f *File) BTF(section []byte, base *btf.Types) (*btf.Types, error) {
	index, err := f.whole(partBTFIndex)
	if err != nil {
		return nil, err
	}
	sums, err := f.whole(partBTFSums)
	if err != nil {
		return nil, err
	}
	if n := (len(section) + sealed.PageSize - 1) / sealed.PageSize; len(sums) != 4*n {
		return nil, f.own.Errorf(f.parts[partBTFSums].From, "%s has %d bytes, and there are %d checksums of it", btfSection, len(section), len(sums)/4)
	}
	checked := sealed.NewChecked(section, func(page int) uint32 { return binary.LittleEndian.Uint32(sums[4*page:]) }, func(from, to int) error {
		return f.own.Errorf(f.parts[partBTFSums].From+from/sealed.PageSize*4, "the checksum of %s+%#x, %d bytes, is another", btfSection, from, to-from)
	})
	return btf.Indexed(section, base, index, func(from, to int) error {
		_, err := checked.Bytes(from, to)
		return err
	})
}
