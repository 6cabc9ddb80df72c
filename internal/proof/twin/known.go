package twin

// known are values that are wrong, by program, flavour, function and parameter, where the debug information is to blame.
var known = map[[4]string]string{
	{"lua", "gcc -O3", "packint", "neg"}:                   "the instruction at the probe is what stores it",
	{"lua", "gcc -O2 -flto", "luaK_settablesize", "asize"}: "the location is the member's memory, to which the sum in a register is never written",
}

// Known says why a value is known to be wrong, or is "".
func (r *Result) Known(v *Verdict, w *Wrong) string {
	return known[[4]string{r.Program, r.Flavour, v.Name, w.Param}]
}
