package attachable

// The names that decode.go has for these causes.
const (
	None        = CauseNone
	CannotStep  = causeCannotStep
	InExclusive = causeInExclusive
)
