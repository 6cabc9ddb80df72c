// Package image reads ELF files: sections and their addresses, symbols, build IDs, and
// the sections that hold debug information.
//
//	f, err := image.Open("vmlinux", nil)
//	fmt.Println(f.BuildID(), f.Arch().Name)
//	for s := range f.Symbols() { ... }
//	sections, err := f.DebugSections() // ".debug_info" and the others, ready to be parsed
//
// Opening a file maps it and reads its headers. DebugSections decompresses sections
// (SHF_COMPRESSED, and .zdebug_* from binutils before 2.26), relocates those of a
// relocatable file, such as a kernel module, and for a stripped file reads the separate
// debug file. It does not interpret the bytes: package dwarfloc does.
//
// Sources: System V gABI, chapters "Object Files" and "Sections"; the psABI of each
// architecture for relocations; the GDB manual, "Separate Debug Files".
//
// # Security
//
// Files are not trusted: offsets and lengths are checked, and allocations are limited by
// what the file can contain. For a damaged section the error is a *FormatError. If a file is
// truncated or written to while it is open, reading it under Guard gives an error that
// wraps ErrChanged. A File may be closed while it is used: see File.Close.
package image
