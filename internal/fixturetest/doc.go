// Package fixturetest checks the images of testdata/vmlinux-fixtures: that they
// belong to the sources beside them, that the pinned compilers still make the
// same bytes, and that each has what the other tests look for. It has no code
// of its own; it exists because ./... does not reach into testdata.
package fixturetest
