// Package truth compares what probes fetch in user space with what programs say of their own
// calls. A debugger reads the same debug information and shares some errors with any reader
// of it; a program that writes down what it passes does not.
//
// The programs, in testdata/, are in C, C++, Rust and Go. Each makes many calls of traced
// functions. Before a call it records what every run of a traced function in it should see;
// the functions themselves record nothing, so compilers treat them as they would any other.
// Calls of truth_mark enclose each call. They are traced too, so every hit belongs to the
// call between whose marks it is.
//
// A build is a program made by one compiler with one set of options: see Matrix. Run makes
// builds, traces them as an importer of this module would, with packages plan, instances and
// tracer, and compares. A value that was not fetched is counted by its reason, and so are the
// values of a run without a hit (a probe on an inlined body may be in a part of it that a run
// does not pass). Hits of a run after its first are counted and not compared: the place is
// the head of a loop then, or the run passes several sites. Only a value that differs is
// wrong.
//
// # Programs that count their runs
//
// The programs in testdata/runs answer another question: is each run of a function seen, and
// once? Each traced function counts its runs, in a volatile or atomic counter of its body, which
// the program prints. CountRuns traces each function at its entries, at all its ways in, and at all
// its ways out, and fetches the counter with each hit: a number that no hit had is a run that was
// missed, a number that two had one that was counted twice. Where the compiler moved the count
// before the way, or the next run before it, numbers are off by one and there are as many hits as
// runs: that is exact too.
//
// # Generated programs
//
// Random makes a program in C from a seed. Compiled with -DRECORD, and without
// optimization, it records itself what each run is given, at the beginning of each
// function; RunRandom compares that with what probes fetch in the same program,
// compiled by others without. It finds what nobody thought of: the compilers'
// mistakes in such programs are counted (make random), and TestRandom fails where
// there are more of them than are known.
//
// # What keeps the comparison honest
//
// Arguments are hidden from the compiler after the first mark, and results are used before
// the second, both by volatile assembly, which compilers keep in order with the calls of the
// marks. So no part of a call that depends on an argument can be outside of its marks. The
// marks and the recorder are compiled apart, without link-time optimization. Random numbers
// have a fixed seed.
//
// # Adding a function
//
// Write it in one of testdata's sources, with a comment that has its definition,
//
//	// trace: scale a b first=p[0]
//
// and a call that records under the definition's probe point, or under a name that the comment
// gives ("trace area: main.*area side=s->side"). The recorded values have the names of the
// definition's arguments; those that are not asked for are not compared.
//
//	truth_open();
//	truth_run("scale"), INT(a), INT(b), truth_int("first", p[0]);
//	truth_start();
//	HIDE(a), HIDE(b);
//	r = scale(a, b, p);
//	KEEP(r);
//	truth_stop();
//
// Functions that it calls, and that are traced too, are recorded after it, in the order of
// their runs.
package truth
