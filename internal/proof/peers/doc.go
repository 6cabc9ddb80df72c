// Package peers compares this module's answers with those of other tools, where those are
// right. It contains only tests.
package peers
