package abi

import (
	"fmt"

	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/types"
)

// Returned returns where a result of type t is, right after the function has returned.
func Returned(t *types.Type, lang uint64, a Machine) (l loc.Location, r loc.Reason, err error) {
	p, ok, err := passingBy(t, lang, a, true)
	if err != nil {
		return l, r, err
	}
	switch {
	case !ok || p.ints() > len(a.Results):
		return l, loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf("where %v is returned is not known", t)}, nil
	case (p.memory || p.reference) && !Of(a.Arch).ResultAddress:
		return l, loc.Reason{Code: reasons.Unsupported, Detail: fmt.Sprintf("%v is returned in memory, and nothing holds its address any more", t)}, nil
	case p.memory || p.reference:
		l = loc.Location{Kind: loc.KindMemory, Expr: Register(a.Results[0], 0)}
	default:
		l, r = inRegisters(&p, a.Arch, a.Results)
	}
	if l.Kind != loc.KindNone {
		l.Rule = rule.ABI
	}
	return l, r, nil
}
