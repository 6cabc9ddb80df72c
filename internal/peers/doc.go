// Package peers compares this module's answers with those of tools that others
// wrote, where those are right. It has only tests.
package peers
