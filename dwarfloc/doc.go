// Package dwarfloc finds where functions run in an image, and where their
// variables are there.
//
//	img, err := dwarfloc.Open("vmlinux")
//	sites, err := img.Sites(ctx, dwarfloc.Name("get_page"))
//	for _, s := range sites {
//		v, err := s.Lookup("page")
//		fmt.Println(s, v.Loc.Text(img.Arch()), v.Reason)
//	}
//
// A [Site] is one place where a function's body begins: its out-of-line entry, a
// clone's, or an inlined instance; or a source line or an instruction in such a body
// ([Image.LineSites], [Image.SiteAt]). A [Variable] is a parameter, local or global as
// one site sees it, with either a [Location] or the [Reason] why there is none. A
// location is symbolic: it names registers, offsets and addresses, and is never
// evaluated here. Package prologue makes BPF of it; a debugger could make something
// else. [Site.Follow] goes on from a variable to members and elements. This package
// imports nothing of BPF.
//
// It reads DWARF 4 and 5 as GCC, clang and Go write them, with the GNU extensions
// in use: location views (see [Rule]), entry values, implicit pointers, parameter
// references, typed operations. Call frame information comes from .debug_frame and
// .eh_frame. Sections may be compressed, and the debug information of a stripped
// file may be in a separate one. Relocatable files, which kernel modules are, get
// addresses and relocations when they are opened (see [Image.LoadsApart]). Documents: DWARF 5 (dwarfstd.org), LSB 5.0 for
// .eh_frame, and the GCC source for its extensions; comments name the sections.
//
// # How it works
//
// Opening an image reads headers only. A question about one name reads the units that
// mention it; another one scans all units in parallel and keeps a record of each
// subprogram and inlined instance, nothing else: abbreviations are compiled into words
// and short programs that pass over what is not wanted.
// Ranges, location lists, types, frame rules and line tables are read for the sites
// that are asked about. The scan's result may be kept in a directory ([Cache]).
//
// # Security
//
// Images are not trusted: offsets, lengths and references are checked, recursion and
// loops are bounded, and what is allocated follows what the file can hold. Damage is
// a [FormatError] that names section and offset, or, where it concerns one variable
// at one site, that variable's reason. A file that is cut short or written to while
// it is open is an error as well ([ErrChanged]). The package does not promise to be
// fast on hostile files.
package dwarfloc
