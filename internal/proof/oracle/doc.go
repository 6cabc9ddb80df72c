// Package oracle is a second, independent implementation of what dwarfloc does. It reads the
// same images and evaluates the same DWARF expressions, but shares no code with dwarfloc:
// it reads units, lists and line tables itself, takes call frame information from delve's
// frame package, and its evaluator computes numbers where dwarfloc builds expressions. It is
// slow and simple on purpose: short enough to be checked against the DWARF standard by
// reading it. Tests compare the two over whole images, and package prove computes with it
// what a prologue should have fetched.
//
// It also follows machine code independently: Listing reads what a disassembler prints, and Paths
// says whether a statement of an inlined body can be reached without passing given instructions.
//
// Listing and Paths know amd64 and arm64; the rest is for all machines.
package oracle
