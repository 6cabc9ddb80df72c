// Package mutate damages real images where it hurts, and asks this module everything about
// them. Whoever changes a reader learns from it what a hostile file can do.
//
// A subject is a good file: an image of some compiler, a BPF object. A variant is a subject with
// one to three mutations of one kind: a reference of an entry leads elsewhere, a count or a
// length is another, an expression has another operation, a section header lies. Mutations know
// ELF and DWARF, so that what they damage is read; random bytes are mostly not.
//
// Each variant is asked everything twice, the second time through a file on disk and a kept
// index. What is no answer and no error is a finding:
//
//   - panic: also one that became an error which wraps mapping.ErrPanic
//   - death: the process ended: a fatal error, a stack overflow
//   - slow: more than a second of processor time for each MB, and more than two
//   - memory: more than 20 times the file's size and 64 MB
//   - differs: the second answer is another
//   - rejected: the kernel's verifier does not accept a prologue
//   - wrong: a site, a location or a prologue cannot be right: see check
//
// A variant is made from a seed and a number alone, so that it can be made again:
//
//	go run ./internal/proof/cmd/measure mutate -seed 1 -only 4711 -dir /tmp/variant
//
// Variants are asked in processes of their own (Work), so that one that dies is seen and named.
package mutate
