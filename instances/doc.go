// Package instances turns a definition and an image into programs to load.
//
//	img, err := dwarfloc.Open("vmlinux")
//	def, err := probe.ParseSection("func=my_func_*_abcd arg1")
//	plan, err := instances.NewPlan(ctx, img, def, instances.Options{})
//	specs, err := plan.ProgramSpecs(spec) // one for each instance
//
// # Sites and instances
//
// A definition has many sites: the functions it names, each out of line and
// inlined at many places. An argument lives somewhere else at each of them, so
// each site needs a prologue of its own in front of the user's program. Many of
// these prologues turn out equal: of the 76 places where Linux 6.1 inlined
// get_page, sixteen find its argument in %rdi. Sites with equal prologues share
// one program, an instance. The plan is the mapping between the two, and what
// each argument's location, or the reason for its absence, is at each site.
//
// What makes prologues equal is their instructions and which of their constants
// are addresses of the image (prologue.Prologue.Key). Comments are left out, so
// an instance carries those of its first site. Prologues are not merged any
// further: two that read the same value in different ways stay two.
//
// A plan is made from the image alone. It is deterministic: the same image and
// definition give the same plan, byte by byte, on any machine. What depends on
// the running kernel is decided when programs are loaded.
//
// A [Sharer] does the same for whole images, without a definition: it writes the
// prologues of all parameters of all sites, and keeps one key of each distinct one.
//
// # Conventions
//
// Up to three numbers are in registers when the user's program begins. More of them,
// strings, structures and arrays are in a record, whose address is its third argument.
// [Options] choose one or the other, by default as the arguments need it; all instances
// of a plan have the same, and Plan.Convention names it. [Plan.Header] declares the
// record in C. Its layout is the same at all sites, unless the definition's functions
// differ in the types of their arguments: [Site.Layout] is that of one site.
//
// # The preprocessor
//
// [Plan.Preprocess] is what libbpf's bpf_program__set_prep called, once for each
// instance: it takes an instance's number and the user's instructions and returns
// the instructions to load. A loader with its own load path needs nothing else.
// [Plan.ProgramSpecs] does it for cilium/ebpf, and [Open] for a whole collection: each
// program whose section name is a definition is replaced by its instances, which share
// the collection's maps.
//
// # Probes
//
// [InKernel] and [InFile] say where an image runs. What runs must be the image: they
// compare build IDs. [Plan.Attach] then puts a probe at every site: a uprobe by the
// file's offset, for one process or all, or a kprobe by address, moved by the kernel's
// slide, or from where a module's section was loaded; many of them at once where the
// kernel can ([Multi]). That some sites are refused is a result, not an error. The attach cookie tells the program its site, and
// [Plan.Values] gives what it was given there, by name and type. Probes end with the
// process that holds them, however it ends.
package instances
