// Package dwarfloc finds where functions run in an image, and where their variables are
// there.
//
//	img, err := dwarfloc.Open("vmlinux", nil)
//	sites, err := img.Sites(ctx, dwarfloc.Name("get_page"))
//	for _, s := range sites {
//		v, err := s.Lookup("page")
//		fmt.Println(s, v.Loc.Text(img.Arch()), v.Reason)
//	}
//
// A [Site] is one place where the body of a function begins: its out-of-line entry, the
// entry of a clone, or an inlined instance. [Image.LineSites] and [Image.SiteAt] return
// sites of source lines and instructions inside bodies. All addresses are link-time
// addresses.
//
// A [Variable] is a parameter, a local or a global as one site sees it. It has either a
// location or the reason why there is none: see package loc.
//
// # What it reads
//
// DWARF 2 to 5 as GCC, clang and Go write it, with the GNU extensions in use: location
// views (see [loc.Rule]), entry values, implicit pointers, parameter references and typed
// operations. Call frame information comes from .debug_frame and .eh_frame. Sections may be compressed, the debug information of a stripped file may
// be in a separate file, and relocatable files, such as kernel modules, are given addresses
// and relocated. Comments name the section of the document that they follow: DWARF 5
// (dwarfstd.org), LSB 5.0 for .eh_frame, or GCC's source for its extensions.
//
// # What it costs
//
// Opening an image reads headers only. A question about one name reads the units that
// mention the name; a question about a pattern scans all units in parallel and keeps one
// small record for each subprogram and inlined instance. Ranges, location lists, types,
// frame rules and line tables are read only for the sites that are asked about.
// [Options].CacheDir keeps the result of the scan for the next process.
//
// # Closing
//
// An image may be closed while other goroutines use it, or what came from it: the file stays mapped until
// the last call has ended. Calls after that, and those that were under way, return an error that wraps
// [os.ErrClosed], not a part of an answer: see [Image.Close].
//
// # Damaged files
//
// Images are not trusted: offsets, lengths and references are checked, recursion and loops
// are bounded, and memory is bounded by the size of the file. Damage is
// an error that wraps [ErrDamaged] and names the section and the offset. If it concerns one variable at
// one site only, it is that variable's reason. A file that is cut short or written to while
// it is open is an error that wraps [ErrChanged]. The package does not promise to be
// fast on hostile files.
package dwarfloc
