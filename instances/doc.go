// Package instances loads and attaches plans: it makes programs of a plan's prologues and
// of the user's program, finds where an image runs, and attaches the programs there.
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
// [Preprocess] is what libbpf's bpf_program__set_prep called, once for each
// instance: it takes an instance's number and the user's instructions and returns
// the instructions to load. A loader with its own load path needs nothing else.
// [ProgramSpecs] does it for cilium/ebpf, and [Expand] for a whole collection, which
// [NewCollection] loads: each program whose section name is a definition is replaced by its
// instances, which share the collection's maps.
//
// # Probes
//
// [Find] finds where an image runs, and compares build IDs: what runs must be the image.
// A plan is made for that place, its plan.Target. [Attach] puts a probe at every site: a
// uprobe by the file's offset, for one process or all, or a kprobe by address, moved by the
// kernel's slide, or from where a module's section was loaded; many of them at once where
// the kernel can (plan.Target). That some sites are refused is a result, not an error. The
// attach cookie is the site's index, and plan.Plan.Values decodes what a program got there.
// Probes end with the process that holds them, however it ends.
package instances
