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
