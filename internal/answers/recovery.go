package answers

import (
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// Unrecovered returns the reason why there is no value where one could be recovered by a rule that is left out.
func Unrecovered(r loc.Rule) loc.Reason {
	if r == rule.Caller || r == rule.Moved {
		return loc.Reason{Code: reasons.EntryValueOnly}
	}
	return loc.Reason{Code: reasons.OptimizedOut}
}
