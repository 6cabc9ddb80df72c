// Package image reads ELF files: sections and their addresses, symbols, build IDs, and
// the sections that hold debug information.
//
//	f, err := image.Open("vmlinux")
//	fmt.Println(f.BuildID(), f.Arch().Name)
//	for s := range f.Symbols() { ... }
//	sections, err := f.DebugSections() // ".debug_info" and the others, ready to be parsed
//
// Opening a file maps it and reads its headers. DebugSections decompresses sections
// (SHF_COMPRESSED, and .zdebug_* of binutils before 2.26), relocates those of a
// relocatable file, which kernel modules are, and takes those of a stripped file from the
// separate file that they were split off to. What the bytes mean is for others to say:
// package dwarfloc does.
//
// Documents: System V gABI, chapters "Object Files" and "Sections"; the psABI of each
// architecture for relocations; the GDB manual, "Separate Debug Files".
//
// # Security
//
// Files are not trusted: offsets and lengths are checked, and what is allocated follows
// what the file can hold. Damage is a *FormatError. A file that is cut short or written to
// while it is open is ErrChanged, where the bytes are read under Guard.
package image
