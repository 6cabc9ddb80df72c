// Package debuginfod fetches debug information by build ID from debuginfod servers, as elfutils'
// client does, and shares that client's cache: what one has fetched, the other finds.
//
//	c, err := debuginfod.FromEnvironment() // of DEBUGINFOD_URLS; nil if that is not set
//	path, err := c.DebugInfo(ctx, buildID)
//	img, err := dwarfloc.Open(path, nil)
//
// or, for whatever image turns out to need it:
//
//	dwarfloc.Open("./server", &dwarfloc.Options{FindDebug: c.Finder(ctx)})
//
// The protocol and the cache are described in debuginfod(8) and debuginfod_find_debuginfo(3) of
// elfutils 0.188. Servers are not trusted: downloads are size-limited, and the reader verifies
// the build ID.
package debuginfod
