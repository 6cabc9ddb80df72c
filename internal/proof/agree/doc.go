// Package agree compares what dwarfloc and the second reader, package oracle, say of an image: its sites, their
// parameters, and where these are. Expressions are compared by what they give for made-up registers and memory.
package agree
