package dwarfloc

import "github.com/bpfprologue/bpfprologue/internal/declared"

// Declared returns where the function is declared. The file's path is relative if it is
// below the compilation directory, and "" if the debug information does not say.
func (s *Site) Declared() (file string, line int, err error) {
	return s.by.declared(s)
}

func (debugInfo) declared(s *Site) (file string, line int, err error) {
	err = s.u.img.guard(func() error {
		e, err := s.u.Entry(s.DIE)
		if err == nil {
			file, line, err = declared.At(e)
		}
		return err
	})
	return file, line, err
}
