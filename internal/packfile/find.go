package packfile

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// span is a part of a file.
type span struct{ from, to uint64 }

// find returns where .BTF and the section are in a whole file.
func find(file []byte, path string) (btf, pack span, err error) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return btf, pack, fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range f.Sections {
		if s.Type == elf.SHT_NOBITS || s.Offset > uint64(len(file)) || s.FileSize > uint64(len(file))-s.Offset {
			continue
		}
		switch x := (span{s.Offset, s.Offset + s.FileSize}); s.Name {
		case btfSection:
			btf = x
		case Section:
			pack = x
		}
	}
	if pack.to == 0 {
		return btf, pack, fmt.Errorf("%s: it is no pack: it has no section %s, or was cut short", path, Section)
	}
	if btf.to > pack.from {
		return btf, pack, fmt.Errorf("%s: %w: %s is not before %s", path, ErrDamaged, btfSection, Section)
	}
	return btf, pack, nil
}

// Find returns the section of a whole file.
func Find(file []byte, path string) ([]byte, error) {
	_, pack, err := find(file, path)
	if err != nil {
		return nil, err
	}
	return file[pack.from:pack.to], nil
}

// BTF returns the contents of .BTF in a whole file.
func BTF(file []byte, path string) ([]byte, error) {
	btf, _, err := find(file, path)
	if err != nil {
		return nil, err
	}
	return file[btf.from:btf.to], nil
}
