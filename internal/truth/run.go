package truth

import (
	"context"
	"fmt"
)

// Run traces a build's program, and compares.
func Run(ctx context.Context, b *Build, path string) (*Result, error) {
	defs, err := Definitions(b.Language)
	if err != nil {
		return nil, err
	}
	t, rec, err := tracedRun(ctx, path, defs)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", b, err)
	}
	return compare(b.String(), t, rec), nil
}
