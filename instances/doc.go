// Package instances loads and attaches plans: it makes programs from a plan's prologues and
// the user's program, finds where an image runs, and attaches the programs there.
//
//	img, err := dwarfloc.Open("vmlinux", nil)
//	def, err := probe.ParseSection("func=my_func_*_abcd arg1")
//	running, err := instances.Find(img, instances.FindOptions{})
//	p, err := plan.New(ctx, img, def, plan.Options{Target: running.Target()})
//	specs, err := instances.ProgramSpecs(p, spec) // one for each instance
//	// load them
//	attached, err := instances.Attach(ctx, p, programs, running, instances.AttachOptions{})
//
// # The preprocessor
//
// [Preprocess] does the work of the callback that libbpf's bpf_program__set_prep took: it is
// called once for each instance, takes the user's instructions, and returns the instructions
// to load. A loader with its own load path needs nothing else. [ProgramSpecs] calls it for a
// program of cilium/ebpf, and [Expand] for a whole collection, which [NewCollection] loads:
// each program whose section name is a definition is replaced by its instances, which share
// the collection's maps.
//
// # Probes
//
// [Find] finds where an image runs. The build IDs of the image and of the running code must
// be equal. A plan is made for that place: see [Running.Target]. [Attach] puts a probe at
// every site: a uprobe by the offset in the file, for one process or for all, or a kprobe by
// the run-time address. One link attaches many sites if the kernel has such links. If the
// kernel refuses some sites that is a result, not an error. The attach cookie is the site's
// index, and plan.Plan.Values decodes what a program got there. Probes end with the process
// that holds them, however it ends.
package instances
