// Package declared says where functions are declared.
//
//	file, line, err := declared.At(entry)
package declared

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bpfprologue/bpfprologue/internal/dw"
	"github.com/bpfprologue/bpfprologue/internal/index"
)

// At returns where the function of an entry is declared.
func At(e dw.Entry) (file string, line int, err error) {
	var number, at uint64
	filed := false
	last, err := index.EachOrigin(e, func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrDeclFile:
			number, filed = v.U, true
		case dw.AttrDeclLine:
			at = v.U
		}
	}, func() bool { return at == 0 && number == 0 })
	if err != nil {
		return "", 0, err
	}
	if at != 0 && !filed {
		file, err = bodyFile(e)
		return file, int(at), err
	}
	if at != 0 || number != 0 {
		return last.Unit.File(number), int(at), nil
	}
	if file, line, err = declaredIn(last); file != "" || err != nil {
		return file, line, err
	}
	return firstLine(e)
}

// bodyFile returns the file that an inlined body's own code is of, or "". Go says in which line an inlined function is declared, and
// not in which file, but calls that are inlined into it have one, and so has its code.
func bodyFile(e dw.Entry) (file string, err error) {
	if e.Tag() != dw.TagInlinedSubroutine {
		return "", nil
	}
	inner := false
	err = e.Children(func(c dw.Entry) (bool, error) {
		if c.Tag() != dw.TagInlinedSubroutine {
			return true, nil
		}
		inner = true
		err := c.Attrs(func(a dw.Attr, v dw.Value) {
			if a == dw.AttrCallFile && file == "" {
				file = e.Unit.File(v.U)
			}
		})
		return file == "", err
	})
	if err != nil || inner {
		return file, err
	}
	var pcs dw.PCs
	var callFile, callLine uint64
	err = e.Attrs(func(a dw.Attr, v dw.Value) {
		pcs.Take(a, v)
		switch a {
		case dw.AttrCallFile:
			callFile = v.U
		case dw.AttrCallLine:
			callLine = v.U
		}
	})
	if err != nil {
		return "", err
	}
	at, ok, err := e.Unit.Start(&pcs)
	if err != nil || !ok {
		return "", err
	}
	rows, err := e.Unit.Rows()
	if err != nil {
		return "", err
	}
	// A body that follows another one of the same line has no row of its own.
	i := sort.Search(len(rows), func(i int) bool { return rows[i].Addr > at }) - 1
	if i < 0 || rows[i].End || uint64(rows[i].File) == callFile && uint64(rows[i].Line) == callLine {
		return "", nil
	}
	return e.Unit.File(uint64(rows[i].File)), nil
}

// declaredIn returns where the class is declared that encloses a function's entry. GCC does not
// say where a lambda's operator() is declared, but where its class is.
func declaredIn(e dw.Entry) (file string, line int, err error) {
	if e.Tag() != dw.TagSubprogram {
		return "", 0, nil
	}
	class, err := e.Unit.Parent(e.Off)
	if err != nil {
		return "", 0, err
	}
	if t := class.Tag(); t != dw.TagStructType && t != dw.TagClassType && t != dw.TagUnionType {
		return "", 0, nil
	}
	err = class.Attrs(func(a dw.Attr, v dw.Value) {
		switch a {
		case dw.AttrDeclFile:
			file = e.Unit.File(v.U)
		case dw.AttrDeclLine:
			line = int(v.U)
		}
	})
	return file, line, err
}

// firstLine returns the source position where a function's code begins.
func firstLine(e dw.Entry) (file string, line int, err error) {
	var pcs dw.PCs
	if err := e.Attrs(pcs.Take); err != nil {
		return "", 0, err
	}
	at, ok, err := e.Unit.Start(&pcs)
	if err != nil || !ok {
		return "", 0, err
	}
	rows, err := e.Unit.Rows()
	if err != nil {
		return "", 0, err
	}
	i, found := slices.BinarySearchFunc(rows, at, func(r dw.Row, a uint64) int { return cmp.Compare(r.Addr, a) })
	for ; found && i < len(rows) && rows[i].Addr == at; i++ {
		if r := &rows[i]; !r.End && r.Line != 0 {
			return e.Unit.File(uint64(r.File)), int(r.Line), nil
		}
	}
	return "", 0, nil
}
