// Package formats builds real programs in each format in which debug information is distributed (split units,
// packages, supplementary files, type units) and compares all answers about them with those about their plain
// builds, location by location.
//
// The sources are those of Debian packages, which scripts/fetch-source.sh fetches: Lua, in C, and ninja, in C++. A
// format is a row of Formats: the options with which both builds are made, and what is done to the one of them. A
// build must have the same code as its plain one; else nothing is compared.
package formats
