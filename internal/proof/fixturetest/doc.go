// Package fixturetest tests the images of testdata/vmlinux-fixtures: that they match the
// sources next to them, that the pinned compilers still make the same bytes, and that each
// contains what other tests look for. The tests are here, not there, because ./... does not
// match packages in testdata.
package fixturetest
