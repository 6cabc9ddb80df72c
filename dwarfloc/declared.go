package dwarfloc

import "github.com/bpfprologue/bpfprologue/internal/declared"

// Declared returns where the function is declared. The file's path is relative if it is
// below the compilation directory, and "" if the debug information does not say.
func (s *Site) Declared() (file string, line int, err error) {
	return s.by.declared(s)
}

func (debugInfo) declared(s *Site) (file string, line int, err error) {
	if s.reused {
		return s.declaration() // EachSite has called guard
	}
	return s.guardedDeclaration()
}

func (s *Site) guardedDeclaration() (file string, line int, err error) {
	err = s.u.img.guard(func() error {
		file, line, err = s.declaration()
		return err
	})
	return file, line, err
}

func (s *Site) declaration() (file string, line int, err error) {
	e, err := s.u.Entry(s.DIE)
	if err != nil {
		return "", 0, err
	}
	return declared.At(e)
}
