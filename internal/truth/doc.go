// Package truth compares what probes fetch in user space with what programs say of their own
// calls. A debugger reads the same debug information and shares some errors with any reader
// of it; a program that writes down what it passes does not.
//
// The programs, in testdata/, are in C, C++, Rust and Go. Each makes many calls of traced
// functions. Before a call it records what every run of a traced function in it should see;
// the functions themselves record nothing, so compilers treat them as they would any other.
// Calls of truth_mark enclose each call. They are traced too, so every hit belongs to the
// call between whose marks it is.
//
// A build is a program made by one compiler with one set of options. Run traces it as an
// importer of this module would, with packages plan, instances and tracer, and compares. A
// value that was not fetched is counted by its reason, and a run without a hit too: only a
// value that differs is wrong.
package truth
