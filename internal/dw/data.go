package dw

import "github.com/bpfprologue/bpfprologue/internal/bin"

// Sections holds the debug sections of one image, and what else is known about it.
type Sections struct {
	Path      string // of the image, for errors
	BigEndian bool   // numbers are big-endian
	WordSize  int    // bytes of an address of the architecture

	// Info is .debug_info, and after it .debug_types: offsets of entries are offsets here.
	Info, Abbrev, Str, LineStr, StrOffsets, Addr []byte
	Loc, Loclists, Ranges, Rnglists, Line        []byte
	Frame, EhFrame                               []byte
	AltLink, Sup                                 []byte // which supplementary file there is: see Elsewhere
	EhFrameAddr                                  uint64 // link-time address of .eh_frame
	Except                                       []byte // .gcc_except_table: see LandingPads
	ExceptAddr                                   uint64 // its link-time address

	// Errorf returns an error about a place in a section, off bytes from its start.
	Errorf func(section string, off uint64, format string, args ...any) error
}

// Data is the debug information of one image.
type Data struct {
	Sections
	Units  []Unit    // see ReadUnits
	Texts  bin.Texts // makes strings of the sections
	types  typeUnits
	frames frames

	// Elsewhere is why parts of the debug information, which are in other files, are not there. Then
	// every answer could be short.
	Elsewhere error

	parts          []part // nil: all is one .debug_info
	strs, lineStrs []stringSection
	skeletons      []*Unit  // see Skeletons
	more           []part   // to be joined: see Join
	moreSections   [][]byte // their bytes
	ready          bool     // see Ready

	// What another file of the image has; the fields above are those of the image itself.
	whole                *Data  // the image's; nil for that itself
	base                 uint64 // where the file's .debug_info begins in Info
	sup                  *Data  // the supplementary file that units refer to, or nil
	StrFrom, LineStrFrom uint64 // where its strings begin among all: see StrAt
	own                  errorf // Errorf, for offsets in the file's own sections
}

// New returns the debug information in an image's sections, given by name:
// ".debug_info" and so on. A missing section is the same as an empty one.
func New(s Sections, named map[string][]byte) *Data {
	for name, to := range map[string]*[]byte{
		".debug_info": &s.Info, ".debug_abbrev": &s.Abbrev, ".debug_str": &s.Str, ".debug_line_str": &s.LineStr,
		".debug_str_offsets": &s.StrOffsets, ".debug_addr": &s.Addr, ".debug_loc": &s.Loc, ".debug_loclists": &s.Loclists,
		".debug_ranges": &s.Ranges, ".debug_rnglists": &s.Rnglists, ".debug_line": &s.Line, ".debug_frame": &s.Frame,
		".eh_frame": &s.EhFrame, ".gcc_except_table": &s.Except, ".gnu_debugaltlink": &s.AltLink, ".debug_sup": &s.Sup,
	} {
		*to = named[name]
	}
	d := &Data{Sections: s}
	d.locate()
	if types := named[".debug_types"]; len(types) > 0 {
		d.join([]part{{data: d, name: ".debug_types", types: true}}, [][]byte{types})
	}
	return d
}
