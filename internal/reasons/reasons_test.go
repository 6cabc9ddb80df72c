package reasons_test

import (
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
)

// TestNames: the numbers here are those that package loc has names for.
func TestNames(t *testing.T) {
	for r, want := range []string{
		reasons.None: "", reasons.OptimizedOut: "optimized-out", reasons.NotAtSite: "not-at-site", reasons.NotStoredYet: "not-stored-yet",
		reasons.EntryValueOnly: "entry-value-only", reasons.ParameterRef: "parameter-ref", reasons.ImplicitPointer: "implicit-pointer",
		reasons.VectorRegister: "vector-register", reasons.NoRegister: "no-register", reasons.ThreadLocal: "thread-local",
		reasons.ModuleAddress: "module-address", reasons.LoadBias: "load-bias", reasons.Unsupported: "unsupported-operation",
		reasons.NoFrameInfo: "no-frame-info", reasons.IncompleteType: "incomplete-type", reasons.NoSuchVariable: "no-such-variable",
		reasons.NoSuchMember: "no-such-member", reasons.TypeMismatch: "type-mismatch", reasons.MissingPiece: "missing-piece",
		reasons.TooLarge: "too-large", reasons.Reassigned: "reassigned", reasons.Contradictory: "contradictory",
		reasons.Damaged: "damaged", reasons.NotDescribed: "not-described",
	} {
		if got := loc.ReasonCode(r); got.String() != want || (got.Describe() == "") != (r == 0) {
			t.Errorf("reason %d is %s (%q), want %s", r, got, got.Describe(), want)
		}
	}
}
