// Package plantest makes plans for tests.
package plantest

import (
	"context"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// Fixture makes the plan of a definition in an image of testdata/vmlinux-fixtures. The
// error is that of plan.New.
func Fixture(t testenv.TB, image, definition string, o plan.Options) (*plan.Plan, error) {
	t.Helper()
	return try(t, testenv.Fixture(t, image), definition, o)
}

// New makes the plan of a definition, or fails the test.
func New(t testenv.TB, img *dwarfloc.Image, definition string, o plan.Options) *plan.Plan {
	t.Helper()
	p, err := try(t, img, definition, o)
	if err != nil {
		t.Fatalf("%s: %v", definition, err)
	}
	return p
}

func try(t testenv.TB, img *dwarfloc.Image, definition string, o plan.Options) (*plan.Plan, error) {
	t.Helper()
	def, err := probe.Parse(definition)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return plan.New(context.Background(), img, def, o)
}
