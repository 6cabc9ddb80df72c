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
// Packs (package pack) are fetched by build ID in the same way, from servers of their own:
//
//	c, err := debuginfod.PacksFromEnvironment("https://packs.example.org") // and of PACK_URLS
//	path, err := c.Pack(ctx, buildID)
//
// The protocol and the cache are described in debuginfod(8) and debuginfod_find_debuginfo(3) of
// elfutils 0.188. Servers are not trusted: what they send is limited in size and time, and a file whose
// build ID is not the one that was asked for is not kept: the next server's is. Without DEBUGINFOD_MAXTIME
// all servers together have an hour for a file; each must send 100 KiB within the timeout. An answer that
// leads to another server is followed, without the headers, and never from https to http. Files of the cache are checked again each time, and those that others than the user and root may write to
// are not read.
package debuginfod
