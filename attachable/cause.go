package attachable

// Cause is why the kernel takes no probe at an address.
type Cause uint8

const (
	// None: nothing in the image speaks against a probe.
	None Cause = iota
	// NotCode: the address is in no section of instructions.
	NotCode
	// FreedInit: the kernel frees the code once it has booted.
	FreedInit
	// NoInstr: code that must not be instrumented (noinstr).
	NoInstr
	// Entry: code between user and kernel mode.
	Entry
	// KprobesText: code that kprobes themselves run.
	KprobesText
	// Blacklisted: the function is on the NOKPROBE_SYMBOL list.
	Blacklisted
	// NoFtrace: the function has no ftrace entry (notrace, assembler, lib/), and the
	// kernel takes probes by events in such functions only where
	// CONFIG_KPROBE_EVENTS_ON_NOTRACE is set.
	NoFtrace
	// InFtrace: the middle of the call that ftrace puts at a function's beginning.
	InFtrace
	// JumpLabel: a static branch, which the kernel rewrites.
	JumpLabel
	// StaticCall: a static call, which the kernel rewrites.
	StaticCall
	// Bug: the trap of a BUG or WARN.
	Bug
	// CannotStep: an instruction that kprobes cannot run in another place.
	CannotStep
	// InExclusive: between an exclusive load and its store, which then never succeeds.
	InExclusive
	// MidInstruction: the middle of an instruction.
	MidInstruction
	causeCount
)

var causeText = [causeCount]struct{ name, text string }{
	None:           {"", ""},
	NotCode:        {"not-code", "it is in no section of instructions"},
	FreedInit:      {"freed-init", "the kernel frees this code once it has booted"},
	NoInstr:        {"noinstr", "code that must not be instrumented"},
	Entry:          {"entry-code", "code between user and kernel mode"},
	KprobesText:    {"kprobes-text", "code that kprobes themselves run"},
	Blacklisted:    {"nokprobe", "the function is on the kernel's NOKPROBE_SYMBOL list"},
	NoFtrace:       {"no-ftrace", "the function has no ftrace entry (notrace, assembler or lib/ code)"},
	InFtrace:       {"in-ftrace", "the middle of ftrace's call at the function's beginning"},
	JumpLabel:      {"jump-label", "a static branch, which the kernel rewrites"},
	StaticCall:     {"static-call", "a static call, which the kernel rewrites"},
	Bug:            {"bug", "the trap of a BUG or WARN"},
	CannotStep:     {"cannot-step", "kprobes cannot run this instruction in another place"},
	InExclusive:    {"in-exclusive", "between an exclusive load and its store, which a probe would make fail each time"},
	MidInstruction: {"mid-instruction", "the middle of an instruction"},
}

// Causes returns all causes, in order.
func Causes() []Cause {
	var out []Cause
	for c := NotCode; c < causeCount; c++ {
		out = append(out, c)
	}
	return out
}

// String returns the short, stable name: "jump-label". None has none.
func (c Cause) String() string { return causeText[c].name }

// Text returns the sentence that goes with the name.
func (c Cause) Text() string { return causeText[c].text }

// MarshalText makes JSON carry the name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
