// Command measure reprints the numbers that the documentation quotes: it makes builds, traces them, damages files, boots
// kernels, and prints a page of Markdown to standard output.
//
//	go run ./internal/proof/cmd/measure truth -only 'c gcc-12 -O2' -dir /tmp/builds
//
// Without a name it lists what can be measured. Flags follow the name; -h lists them. bench/README.md has a summary of each.
package main

import (
	"fmt"
	"os"

	"github.com/bpfprologue/bpfprologue/internal/proof/mutate"
)

// measures are what can be measured.
var measures = []struct {
	name, what string
	run        func()
}{
	{"truth", "what probes fetch, compared with what programs recorded", measureTruth},
	{"runs", "hits, compared with the runs that programs counted", measureRuns},
	{"random", "what probes fetch in generated programs", measureRandom},
	{"twin", "what probes see in real programs, beside their unoptimized builds", measureTwin},
	{"formats", "answers about real programs in each format of debug information", measureFormats},
	{"mutate", "answers about damaged images", measureMutate},
	{"guality", "what GCC's developers say that variables are, beside GDB", measureGuality},
	{"producers", "what each compiler's debug information gives (-w replaces a table in a page)", measureProducers},
	{"viewless", "what is believed of an image read without location views, beside what they say", measureViewless},
	{"reach", "two readers of the kernels of all architectures", measureReach},
	{"packs", "size and time of packs", measurePacks},
	{"conditions", "what conditions cost, in a live kernel", measureConditions},
	{"emitted", "what is emitted for a kernel", measureEmitted},
	{"hits", "what a hit costs (root)", measureHits},
	{"growth", "time and memory by size of the image", measureGrowth},
	{"params", "one question, as a process", measureParams},
	{"peak", "the memory of a command", measurePeak},
	{"gate", "time and memory of a dozen questions, beside an earlier commit's tool", measureGate},
	{"walk", "the standard library's walk over an image", measureWalk},
}

func main() {
	if os.Getenv(mutate.WorkerVariable) != "" {
		measureMutate() // which runs itself for each file
		return
	}
	if len(os.Args) > 1 {
		for _, m := range measures {
			if m.name == os.Args[1] {
				os.Args = append([]string{"measure " + m.name}, os.Args[2:]...)
				m.run()
				return
			}
		}
		fmt.Fprintf(os.Stderr, "measure: %q is nothing that is measured\n", os.Args[1])
	}
	for _, m := range measures {
		fmt.Fprintf(os.Stderr, "  %-11s %s\n", m.name, m.what)
	}
	os.Exit(2)
}
