package dwarfloc_test

import (
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/compute"
)

// Tests inside the package follow paths too, with a package that imports this one.
func init() {
	dwarfloc.Follow, dwarfloc.Resolve, dwarfloc.Pointee = compute.Follow, compute.Resolve, compute.Pointee
	dwarfloc.MembersOf = func(v *dwarfloc.Variable) []string { return compute.Wrong(v).Members }
}
