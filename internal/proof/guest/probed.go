package guest

import "time"

// Steady is the argument with which init does what a Probing's work is, and prints what came of it: the same each time.
const Steady = "steady"

// Vectors is the argument with which init has the kernel's vector code encrypt, hash, and compute and recover what a RAID has, and prints
// what came of it.
const Vectors = "vectors"

// ProbeAll is the argument, with the path of a file with a Probing in JSON, with which init has kprobes at all instructions of functions
// while it works, and prints a ProbedAll in JSON.
const ProbeAll = "probe-all"

// Kill is the argument, with a number and a command, with which init kills the command that often while it makes or ends probes, and
// prints a Killed in JSON.
const Kill = "kill"

// Killed is what came of it.
type Killed struct {
	Rounds  int
	Usually time.Duration // that the command takes
	Ended   int           // rounds in which it was not killed in time
	Left    int           // rounds after which the kernel's settings were those of the command
	Probes  int           // that there are in the end
	Wrong   []string      // what the next command had not put back
}

// Encodings is the argument, with how many, and a seed, with which init runs instructions with and without a uprobe, by the program
// Runner, and prints EncodingsRun in JSON.
const (
	Encodings = "encodings"
	Runner    = "/runner"
)

// EncodingsRun is what came of it.
type EncodingsRun struct {
	Run, Differ, Hit int
	Wrong            []string // what package probed does not say of an instruction
}

// Probing is what ProbeAll does.
type Probing struct {
	Modules   []string // to load first
	Work      string   // Steady or Vectors
	Functions []Function
	Want      int // functions to probe: as many of those that the work runs, from the first on
	Together  int // functions that have probes at the same time
}

// Function is code that is probed.
type Function struct {
	Name string
	// At is how kprobe_events names it: an address, or a module and a symbol.
	At      string
	Offsets []int // of its instructions
}

// ProbedAll is what came of a Probing.
type ProbedAll struct {
	Tried, Ran, Probes int
	Hits               uint64
	Refused            map[string]int // probes, by the kernel's answer
	Work               string         // what Steady printed
	Wrong              []string       // FUNCTION+OFFSET of probes with which the work came to something else
	How                string         // the first of these, what it printed
	Said               []string       // lines of the kernel's log, warnings and worse
}
