package twin

import (
	"debug/dwarf"
	"debug/elf"
	"strings"
)

// sourceNames are the names that functions have in the source text, without classes and namespaces, by the names of their symbols: C++'s differ.
type sourceNames map[string]string

// readNames reads a program's.
func readNames(path string) (sourceNames, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := file.DWARF()
	if err != nil {
		return nil, err
	}
	symbols, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	at := make(map[uint64]string)
	for r := data.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		addr, ok := e.Val(dwarf.AttrLowpc).(uint64)
		if e.Tag != dwarf.TagSubprogram || !ok {
			continue
		}
		if at[addr], err = nameOf(data, e); err != nil {
			return nil, err
		}
	}
	names := make(sourceNames)
	for _, s := range symbols {
		if name := at[s.Value]; name != "" && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			names[s.Name] = name
		}
	}
	return names, nil
}

// nameOf returns the name of an entry, or of the one that it completes.
func nameOf(data *dwarf.Data, e *dwarf.Entry) (string, error) {
	for {
		if name, ok := e.Val(dwarf.AttrName).(string); ok {
			return name, nil
		}
		to, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			to, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			return "", nil
		}
		r := data.Reader()
		r.Seek(to)
		var err error
		if e, err = r.Next(); e == nil || err != nil {
			return "", err
		}
	}
}

// name is that of the function that a symbol is of. GCC adds to it what it made of the function, as in "f.part.0".
func (n sourceNames) name(symbol string) string {
	if name, ok := n[symbol]; ok {
		return name
	}
	symbol, _, _ = strings.Cut(symbol, ".")
	return symbol
}
