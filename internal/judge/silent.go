package judge

// Silent is evidence that shows nothing: neither the code nor other variables and bodies tell more than a candidate itself. Of most candidates
// the verdict is the same with what can be found.
type Silent struct{}

// Statements is 0.
func (Silent) Statements() (int, error) { return 0, nil }

// Begun is false.
func (Silent) Begun() (bool, error) { return false, nil }

// ForAnother is false.
func (Silent) ForAnother() (bool, error) { return false, nil }

// Ran is false.
func (Silent) Ran() (bool, error) { return false, nil }

// PassedOn is false.
func (Silent) PassedOn() (bool, error) { return false, nil }

// PassedBefore is false.
func (Silent) PassedBefore() (bool, error) { return false, nil }

// Narrower is false.
func (Silent) Narrower() (bool, error) { return false, nil }

// Cut is false.
func (Silent) Cut() (bool, error) { return false, nil }

// MovedOut is false.
func (Silent) MovedOut() (bool, error) { return false, nil }

// OfNumber is false.
func (Silent) OfNumber() (bool, error) { return false, nil }

// Placed is true.
func (Silent) Placed() (bool, error) { return true, nil }

// Assigned is Never.
func (Silent) Assigned() (Assignment, error) { return Never, nil }

// Several is false.
func (Silent) Several() (bool, error) { return false, nil }

// Kept is false.
func (Silent) Kept() (bool, error) { return false, nil }

// Made is false.
func (Silent) Made() (bool, error) { return false, nil }

// Spent is false.
func (Silent) Spent() (bool, error) { return false, nil }

// Outside is false.
func (Silent) Outside(bool) (bool, error) { return false, nil }

// MadeInside is false.
func (Silent) MadeInside() (bool, error) { return false, nil }

// KeptOutside is false.
func (Silent) KeptOutside() (bool, error) { return false, nil }

// Stepped is false.
func (Silent) Stepped() (bool, error) { return false, nil }

// Midway is false.
func (Silent) Midway() (bool, error) { return false, nil }

// Looped is false.
func (Silent) Looped() (bool, error) { return false, nil }

// Overtaken is false.
func (Silent) Overtaken() (bool, error) { return false, nil }

// Hoisted is false.
func (Silent) Hoisted() (bool, error) { return false, nil }

// Alone is false.
func (Silent) Alone() (bool, error) { return false, nil }

// Elsewhere is false.
func (Silent) Elsewhere() (bool, error) { return false, nil }

// MadeBehind is false.
func (Silent) MadeBehind() (bool, error) { return false, nil }

// Turned is false.
func (Silent) Turned() (bool, error) { return false, nil }

// Copied is false.
func (Silent) Copied() (bool, error) { return false, nil }

// PassedNumber is false.
func (Silent) PassedNumber() (bool, error) { return false, nil }

// Steady is false.
func (Silent) Steady() (bool, error) { return false, nil }

// PassedOther is false.
func (Silent) PassedOther() (bool, error) { return false, nil }

// ChosenSince is false.
func (Silent) ChosenSince() (bool, error) { return false, nil }

// Joined is false.
func (Silent) Joined() (bool, error) { return false, nil }

// Returned is false.
func (Silent) Returned() (bool, error) { return false, nil }

// Over is false.
func (Silent) Over() (bool, error) { return false, nil }

// OnePlace is false.
func (Silent) OnePlace() (bool, error) { return false, nil }
