package dw

// Sections are the sections of one image with debug information, and what is known of
// the image besides.
type Sections struct {
	Path      string // of the image, for errors
	BigEndian bool   // numbers are big-endian
	WordSize  int    // bytes of an address of the architecture

	Info, Abbrev, Str, LineStr, StrOffsets, Addr []byte
	Loc, Loclists, Ranges, Rnglists, Line        []byte
	Frame, EhFrame                               []byte
	EhFrameAddr                                  uint64 // link-time address of .eh_frame

	// Errorf makes the errors about a place in a section.
	Errorf func(section string, off uint64, format string, args ...any) error
}

// Data is the debug information of one image.
type Data struct {
	Sections
	Units  []Unit // see readUnits
	frames frameTable
}

// New returns the debug information in an image's sections, which are given by their names:
// ".debug_info" and so on. A section that is not there is empty.
func New(s Sections, named map[string][]byte) *Data {
	for name, to := range map[string]*[]byte{
		".debug_info": &s.Info, ".debug_abbrev": &s.Abbrev, ".debug_str": &s.Str, ".debug_line_str": &s.LineStr,
		".debug_str_offsets": &s.StrOffsets, ".debug_addr": &s.Addr, ".debug_loc": &s.Loc, ".debug_loclists": &s.Loclists,
		".debug_ranges": &s.Ranges, ".debug_rnglists": &s.Rnglists, ".debug_line": &s.Line, ".debug_frame": &s.Frame,
		".eh_frame": &s.EhFrame,
	} {
		*to = named[name]
	}
	return &Data{Sections: s}
}
