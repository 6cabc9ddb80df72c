// Package twin compares what probes see in real programs as they are shipped with what the same programs do when nothing is
// optimized.
//
// A program whose runs are written down (package truth) has to be written for it. Here any program serves: it is built twice.
// In A, with -O0, each call is a call, and each parameter is in memory where its function begins. B is what a compiler makes of
// the same sources with one of the Flavours. Both run the same commands on the same input while every function is traced with
// all its parameters ("* $params"), by packages plan, instances and tracer as an importer would use them. What A ran B must have
// been seen to run: as often, in the same order, with the same values.
//
// # The yardstick
//
// A is believed only where it agrees with two other runs. A third build has GCC call a counter where each function begins
// (-finstrument-functions): a function of A whose hits are another number than that is left out, and so counted. A runs a second
// time, in which addresses are random: a parameter whose values differ between the two runs, as those that have an address in them
// do, is not compared, and a function that runs another number of times is left out. Addresses themselves, structures and texts
// are not compared: numbers, truth values, characters and enumerators are.
//
// # Which hit is which run
//
// For each function the runs of A and the hits of B are aligned as diff aligns lines, where a value that B does not have, or
// that it says is doubtful, equals any. Compilers move bodies, so what is left is paired by equal values in any order, and
// hits without any value with runs that were called where the site's body was. What is left of that in one gap, runs and hits both,
// is paired one by one if the run was called where the site's body was: there a value is wrong. A run without a hit is missed; a hit
// without a run is extra, and marked if its site says that it fires again.
//
// # Where runs end
//
// CompareEnds compares what the parameters are where runs end ("*%exit $params"), in the order of the ends. There no rule says which runs have none.
//
// # What may differ
//
// A compiler may call less often than the sources say. In A the address to which each run returns tells which run called it, and
// at which line; B's instructions, as objdump prints them, and the inlined bodies of its debug information tell where functions are
// still called. A run whose call, or one on the way there, has no code in B cannot be seen. This and other evidence that does not
// come from the hits it explains is a Rule each, and missed runs and extra hits are counted by rule. What none explains is the
// tool's fault, or the debug information's, as far as anybody can tell.
//
// The rules believe the tool where it says that an inlined body has no site, that it does not know all ways into one, or that no
// probe is possible. Packages truth, agree and prove are about that.
package twin
