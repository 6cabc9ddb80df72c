// Package witness traces a program of which one half has lost its pointers to the debug information, and knows them by its instructions: the
// other half has them, and the program says what they are.
package witness
