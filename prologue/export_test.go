package prologue

// What tests of the package use besides its exported names.
var (
	NewLayout      = newLayout
	ErrTooManyArgs = errTooManyArgs
	ErrNoArch      = errNoArch
	ErrBadReads    = errBadReads
	ErrBadKind     = errBadKind
)
