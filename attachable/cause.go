package attachable

import (
	"fmt"
)

// Cause is why the kernel refuses a probe at an address. The causes, each by the result of
// String and of Describe, are
//
//   - not-code: it is in no section of instructions
//   - freed-init: the kernel frees this code once it has booted
//   - noinstr: code that must not be instrumented
//   - entry-code: code between user and kernel mode
//   - kprobes-text: code that kprobes themselves run
//   - nokprobe: the function is on the kernel's NOKPROBE_SYMBOL list
//   - no-ftrace: the function has no ftrace entry (notrace, assembler or lib/ code)
//   - in-ftrace: the middle of ftrace's call at the function's beginning
//   - jump-label: a static branch, which the kernel rewrites
//   - static-call: a static call, which the kernel rewrites
//   - bug: the trap of a BUG or WARN
//   - cannot-step: kprobes cannot run this instruction in another place
//   - in-exclusive: between an exclusive load and its store, which a probe would make fail each time
//   - misread: kprobes would not do what this instruction does; the kernel accepts the probe
//   - mid-instruction: the middle of an instruction
//   - not-read: the image was closed, or its file changed
//
// CauseNone has neither. After not-read dwarfloc.Image.Changed says more. Causes are only added to the list, never removed.
type Cause uint8

const (
	// CauseNone means that the image has no reason against a probe.
	CauseNone Cause = iota
	// causeNotCode: the address is in no section of instructions.
	causeNotCode
	// causeFreedInit: the kernel frees the code once it has booted.
	causeFreedInit
	// causeNoInstr: code that must not be instrumented (noinstr).
	causeNoInstr
	// causeEntry: code between user and kernel mode.
	causeEntry
	// causeKprobesText: code that kprobes themselves run.
	causeKprobesText
	// causeBlacklisted: the function is on the NOKPROBE_SYMBOL list.
	causeBlacklisted
	// causeNoFtrace: the function has no ftrace entry (notrace, assembler, lib/), and the
	// kernel takes probes by events in such functions only where
	// CONFIG_KPROBE_EVENTS_ON_NOTRACE is set.
	causeNoFtrace
	// causeInFtrace: the middle of the call that ftrace puts at a function's beginning.
	causeInFtrace
	// causeJumpLabel: a static branch, which the kernel rewrites.
	causeJumpLabel
	// causeStaticCall: a static call, which the kernel rewrites.
	causeStaticCall
	// causeBug: the trap of a BUG or WARN.
	causeBug
	// causeCannotStep: an instruction that kprobes cannot run in another place.
	causeCannotStep
	// causeInExclusive: between an exclusive load and its store, which then never succeeds.
	causeInExclusive
	// causeMisread: kprobes emulate a vector instruction as another one, or a call with a prefix wrongly.
	causeMisread
	// causeMidInstruction: the middle of an instruction.
	causeMidInstruction
	// causeNotRead: the image was closed, or its file changed, so nothing is known.
	causeNotRead
	causeCount
)

var causeText = [causeCount]struct{ name, text string }{
	CauseNone:           {"", ""},
	causeNotCode:        {"not-code", "it is in no section of instructions"},
	causeFreedInit:      {"freed-init", "the kernel frees this code once it has booted"},
	causeNoInstr:        {"noinstr", "code that must not be instrumented"},
	causeEntry:          {"entry-code", "code between user and kernel mode"},
	causeKprobesText:    {"kprobes-text", "code that kprobes themselves run"},
	causeBlacklisted:    {"nokprobe", "the function is on the kernel's NOKPROBE_SYMBOL list"},
	causeNoFtrace:       {"no-ftrace", "the function has no ftrace entry (notrace, assembler or lib/ code)"},
	causeInFtrace:       {"in-ftrace", "the middle of ftrace's call at the function's beginning"},
	causeJumpLabel:      {"jump-label", "a static branch, which the kernel rewrites"},
	causeStaticCall:     {"static-call", "a static call, which the kernel rewrites"},
	causeBug:            {"bug", "the trap of a BUG or WARN"},
	causeCannotStep:     {"cannot-step", "kprobes cannot run this instruction in another place"},
	causeInExclusive:    {"in-exclusive", "between an exclusive load and its store, which a probe would make fail each time"},
	causeMisread:        {"misread", "kprobes would not do what this instruction does; the kernel accepts the probe"},
	causeMidInstruction: {"mid-instruction", "the middle of an instruction"},
	causeNotRead:        {"not-read", "the image was closed, or its file changed"},
}

// String returns the short, stable name, such as "jump-label".
func (c Cause) String() string {
	if c >= causeCount {
		return fmt.Sprintf("Cause(%d)", uint8(c))
	}
	return causeText[c].name
}

// Describe returns a description for people.
func (c Cause) Describe() string {
	if c >= causeCount {
		return c.String()
	}
	return causeText[c].text
}
