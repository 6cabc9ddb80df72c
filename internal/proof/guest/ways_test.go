package guest_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/attachable"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/plan"
	"github.com/bpfprologue/bpfprologue/probe"
)

// turns is how often each of wayCalls is made.
const turns = 4

// wayCalls are the system calls of TestWays, by name. What differs between the turns is made by
// with, if it is not nil.
var wayCalls = []struct {
	name    string
	call    guest.Call
	with    func(turn int, c *guest.Call, at resultOf)
	returns int64
}{
	{"open", call("openat", number(-100), text("/tmp/first"), number(unix.O_RDWR|unix.O_CREAT), number(0o640)), nil, anything},
	{"dup3", call("dup3", number(0), number(file), number(unix.O_CLOEXEC)), func(turn int, c *guest.Call, _ resultOf) { c.Args[0] = result(turn) }, file},
	{"create", call("openat", number(-100), text("/tmp/new-0"), number(unix.O_RDWR|unix.O_CREAT|unix.O_EXCL), number(0o640)), renamed, anything},
	{"write", call("write", number(file), memory(777), number(777)), nil, 777},
	{"lseek", call("lseek", number(file), number(40), number(unix.SEEK_SET)), nil, 40},
	{"read", call("read", number(file), memory(200), number(200)), nil, 200},
	{"lseek back", call("lseek", number(file), number(40), number(unix.SEEK_SET)), nil, 40},
	{"pread64", call("pread64", number(file), memory(30), number(30), number(5)), nil, 30},
	{"pwrite64", call("pwrite64", number(file), memory(30), number(30), number(5)), nil, 30},
	{"preadv", call("preadv", number(file), vector(30, 31), number(2), number(9), number(0)), nil, 61},
	{"getpgid", call("getpgid", number(0)), nil, anything},
	{"getpgid of none", call("getpgid", number(0x3ffffff0)), nil, -int64(unix.ESRCH)},
	{"prlimit64", call("prlimit64", number(0), number(unix.RLIMIT_CORE), words(4096, 8192), words(0, 0)), nil, 0},
	{"prlimit64, new", call("prlimit64", number(0), number(unix.RLIMIT_CORE), words(4096, 8192), number(0)), nil, 0},
	{"prlimit64, old", call("prlimit64", number(0), number(unix.RLIMIT_CORE), number(0), words(0, 0)), nil, 0},
	{"fchown", call("fchown", number(file), number(1234), number(4321)), nil, 0},
	{"fchmod", call("fchmod", number(file), number(0o604)), nil, 0},
	{"fallocate", call("fallocate", number(file), number(0), number(8192), number(5000)), nil, 0},
	{"ftruncate", call("ftruncate", number(file), number(6000)), func(turn int, c *guest.Call, _ resultOf) { c.Args[1] = number(6000 - int64(turn)) }, 0},
	{"mkdirat", call("mkdirat", number(-100), text("/tmp/folder-0"), number(0o751)), renamed, 0},
	{"mkdirat of one that is there", call("mkdirat", number(-100), text("/tmp/folder-0"), number(0o751)), nil, -int64(unix.EEXIST)},
	{"symlinkat", call("symlinkat", text("anywhere"), number(-100), text("/tmp/link-0")), renamed2, 0},
	{"unlinkat", call("unlinkat", number(-100), text("/tmp/link-0"), number(0)), renamed, 0},
	{"unlinkat of none", call("unlinkat", number(-100), text("/tmp/link-0"), number(0)), nil, -int64(unix.ENOENT)},
	{"eventfd2", call("eventfd2", number(31), number(0)), nil, anything},
	{"epoll_create1", call("epoll_create1", number(0)), nil, anything},
	{"epoll_ctl, add", call("epoll_ctl", number(0), number(unix.EPOLL_CTL_ADD), number(0), words(unix.EPOLLIN)), polled, 0},
	{"epoll_ctl, modify", call("epoll_ctl", number(0), number(unix.EPOLL_CTL_MOD), number(0), words(unix.EPOLLHUP)), polled, 0},
	{"futex", call("futex", words(5), number(futexPrivate|futexWakeOp), number(11), number(22), words(5), number(0x1233)), nil, 0},
	{"shmget", call("shmget", number(0x1234), number(20480), number(unix.IPC_CREAT|0o600)), nil, anything},
	{"semget", call("semget", number(0x4321), number(3), number(unix.IPC_CREAT|0o600)), func(turn int, c *guest.Call, _ resultOf) { c.Args[0] = number(0x4321 + int64(turn)) }, anything},
}

// renamed gives each turn a name of its own, in place of the 0 that the name ends with.
func renamed(turn int, c *guest.Call, _ resultOf)  { rename(turn, &c.Args[1]) }
func renamed2(turn int, c *guest.Call, _ resultOf) { rename(turn, &c.Args[2]) }

func rename(turn int, a *guest.Arg) {
	a.Memory = slices.Clone(a.Memory)
	a.Memory[len(a.Memory)-2] += byte(turn)
}

// polled polls a turn's eventfd with its epoll instance.
func polled(_ int, c *guest.Call, at resultOf) {
	c.Args[0], c.Args[2] = at("epoll_create1"), at("eventfd2")
}

// resultOf returns what a call with a name has returned in the same turn.
type resultOf func(name string) guest.Arg

// bodyRuns is how often an inlined body runs in one system call, by the sources of Linux 6.1.
type bodyRuns struct {
	in       string // the symbol that contains the body
	function string
	line     int // of the call that was inlined
	call     string
	runs     int
}

var runsOfBodies = []bodyRuns{
	{"ksys_lseek", "fdput_pos", 307, "lseek", 1},
	{"ksys_lseek", "fdput", 82, "lseek", 1},
	{"ksys_read", "fdput_pos", 616, "read", 1},
	{"ksys_read", "fdput", 82, "read", 1},
	{"ksys_write", "fdput_pos", 640, "write", 1},
	{"ksys_write", "fdput", 82, "write", 1},
	{"vfs_read", "call_read_iter", 389, "read", 1},
	{"vfs_read", "call_read_iter", 389, "pread64", 1},
	{"vfs_read", "iov_iter_ubuf", 387, "read", 1},
	{"vfs_read", "iov_iter_ubuf", 387, "pread64", 1},
	{"vfs_write", "call_write_iter", 491, "write", 1},
	{"vfs_write", "call_write_iter", 491, "pwrite64", 1},
	{"vfs_write", "iov_iter_ubuf", 489, "write", 1},
	{"vfs_write", "iov_iter_ubuf", 489, "pwrite64", 1},
	{"shmem_file_read_iter", "file_accessed", 2732, "read", 1},
	{"shmem_file_read_iter", "file_accessed", 2732, "pread64", 1},
	{"shmem_file_read_iter", "i_size_read", 2636, "read", 1},
	{"shmem_file_read_iter", "i_size_read", 2669, "read", 1},
	{"do_getpgid", "rcu_read_unlock", 1161, "getpgid", 2},         // one is in the marker before the call
	{"do_getpgid", "rcu_read_unlock", 1161, "getpgid of none", 2}, // one is in the marker before the call
	{"do_prlimit", "task_lock", 1468, "prlimit64", 1},
	{"do_prlimit", "task_lock", 1468, "prlimit64, new", 1},
	{"do_prlimit", "task_lock", 1468, "prlimit64, old", 1},
	{"do_prlimit", "spin_lock", 206, "prlimit64", 1},
	{"do_prlimit", "task_unlock", 1486, "prlimit64", 1},
	{"do_prlimit", "spin_unlock", 211, "prlimit64", 1},
	{"do_unlinkat", "inode_unlock", 4450, "unlinkat", 1},
	{"do_unlinkat", "inode_unlock", 4450, "unlinkat of none", 1},
	{"do_unlinkat", "path_put", 4461, "unlinkat", 1},
	{"do_unlinkat", "path_put", 4461, "unlinkat of none", 1},
	{"vfs_unlink", "inode_unlock", 4385, "unlinkat", 1},
	{"filename_create", "inode_unlock", 3960, "mkdirat of one that is there", 1},
	{"filename_create", "ERR_PTR", 3958, "mkdirat of one that is there", 1},
	{"do_dup2", "spin_unlock", 1113, "dup3", 1},
	{"do_dup2", "spin_unlock", 1121, "dup3", 0}, // where it fails with EBUSY
	{"path_openat", "link_path_walk", 3834, "open", 1},
	{"path_openat", "link_path_walk", 3834, "create", 1},
	{"path_openat", "inode_unlock", 3605, "open", 1},
	{"path_openat", "inode_unlock", 3605, "create", 1},
	{"path_openat", "uid_valid", 1828, "create", 1},
	{"path_openat", "__kuid_val", 113, "create", 1},
	{"path_openat", "mapped_fsgid", 1830, "create", 1},
	{"path_openat", "from_vfsgid", 471, "create", 1},
	{"path_openat", "__kgid_val", 472, "create", 1},
	{"path_openat", "get_current", 472, "create", 1},
	{"path_init", "__seqprop_spinlock_sequence", 2373, "open", 1},
	{"path_init", "__seqprop_spinlock_sequence", 2374, "open", 1},
	{"shmem_get_inode", "INIT_LIST_HEAD", 2381, "create", 1},
	{"shmem_get_inode", "cache_no_acl", 2384, "create", 1},
	{"shmem_get_inode", "mapping_set_large_folios", 2385, "create", 1},
	{"shmem_get_inode", "simple_xattrs_init", 2383, "create", 1},
	{"chown_common", "from_vfsuid", 731, "fchown", 1},
	{"setattr_prepare", "get_current", 102, "fchown", 1},
	{"setattr_prepare", "vfsuid_eq_kuid", 102, "fchown", 1},
	{"setattr_prepare", "i_uid_into_vfsuid", 129, "fchown", 1},
	{"setattr_prepare", "i_user_ns", 1671, "fchown", 2},   // of chown_ok and chgrp_ok
	{"setattr_prepare", "make_vfsuid", 1671, "fchown", 2}, // of chown_ok and chgrp_ok
	{"setattr_prepare", "no_idmapping", 200, "fchown", 2}, // of chown_ok and chgrp_ok
	{"setattr_copy", "i_gid_update", 309, "fchown", 1},
	{"setattr_copy", "i_gid_update", 309, "fchmod", 1},
	{"setattr_copy", "i_gid_update", 309, "ftruncate", 1},
	{"shmem_setattr", "shmem_truncate_range", 1150, "ftruncate", 1},
	{"shmem_setattr", "inode_inc_iversion", 1073, "ftruncate", 1},
	{"shmem_fallocate", "spin_lock", 2900, "fallocate", 1},
	{"shmem_fallocate", "spin_unlock", 2902, "fallocate", 1},
	{"do_epoll_ctl", "ep_find", 2212, "epoll_ctl, add", 1},
	{"do_epoll_ctl", "epoll_mutex_lock", 2183, "epoll_ctl, add", 1},
	{"do_epoll_ctl", "is_file_epoll", 2146, "epoll_ctl, add", 1},
	{"do_epoll_ctl", "ep_modify", 2239, "epoll_ctl, modify", 1},
	{"do_epoll_ctl", "ep_has_wakeup_source", 1603, "epoll_ctl, modify", 0}, // with EPOLLWAKEUP
	{"do_epoll_ctl", "ep_has_wakeup_source", 1605, "epoll_ctl, modify", 1},
	{"do_epoll_ctl", "spin_lock", 1439, "epoll_ctl, add", 1},
	{"do_epoll_ctl", "rb_link_node", 1296, "epoll_ctl, add", 1},
	{"do_epoll_ctl", "rb_insert_color_cached", 1297, "epoll_ctl, add", 1},
	{"do_epoll_ctl", "hlist_add_head_rcu", 1449, "epoll_ctl, add", 1},
	{"futex_wake_op", "spin_lock", 244, "futex", 1},
	{"futex_wake_op", "spin_unlock", 252, "futex", 1},
	{"futex_wake_op", "futex_atomic_op_inuser", 260, "futex", 1},
	{"futex_wake_op", "pagefault_enable", 212, "futex", 1},
	{"futex_wake_op", "pagefault_disabled_dec", 220, "futex", 1},
	{"futex_wake_op", "get_current", 193, "futex", 1},
	{"futex_wake_op", "sign_extend32", 193, "futex", 1},
	{"ipcget", "rcu_read_unlock", 665, "shmget", 1},
	{"newary", "INIT_LIST_HEAD", 301, "semget", 1},
	{"newary", "INIT_LIST_HEAD", 560, "semget", 3},
	{"newary", "INIT_LIST_HEAD", 561, "semget", 3},
	{"newary", "complexmode_tryleave", 464, "semget", 1},
	{"evict", "spin_unlock", 540, "unlinkat", 1},
}

// TestWays makes system calls and compares the hits of all ways into bodies with the runs that
// these calls must have.
func TestWays(t *testing.T) {
	t.Parallel()
	for _, k := range kernels(t) {
		if k.GOARCH == "amd64" && k.old() {
			t.Run(k.Release, func(t *testing.T) {
				t.Parallel()
				checkWays(t, k, 50)
			})
		}
	}
}

// TestForeignWays is TestWays on ppc64el, whose kernel's sources and system calls are the same.
func TestForeignWays(t *testing.T) {
	t.Parallel()
	for _, k := range foreignKernels(t) {
		if k.GOARCH == "ppc64le" {
			t.Run(k.Release, func(t *testing.T) {
				t.Parallel()
				checkWays(t, testKernel{k}, 15)
			})
		}
	}
}

// checkWays wants as many bodies to have several ways in.
func checkWays(t *testing.T, k testKernel, wanted int) {
	img := testenv.Open(t, k.Vmlinux)
	table, err := attachable.New(img)
	if err != nil {
		t.Fatal(err)
	}
	task := &guest.Task{Limit: 3 * time.Minute}
	var plans []*plan.Plan
	add := func(text string, entryOnly bool, keep func(*dwarfloc.Site) bool) {
		def, err := probe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(t.Context(), img, def, plan.Options{EntryOnly: entryOnly})
		if err != nil {
			t.Fatal(err)
		}
		p.Sites = slices.DeleteFunc(p.Sites, func(s plan.Site) bool { return !keep(s.Site) })
		for i := range p.Sites {
			if cause := table.At(p.Sites[i].Addr); cause != attachable.CauseNone {
				t.Errorf("%v: no probe is possible: %v", p.Sites[i], cause)
			}
		}
		packed, err := guest.Pack(p)
		if err != nil {
			t.Fatal(err)
		}
		plans, task.Plans = append(plans, p), append(task.Plans, packed)
	}
	add(guest.Marker, false, func(*dwarfloc.Site) bool { return true })
	known := func(s *dwarfloc.Site) bool {
		return slices.ContainsFunc(runsOfBodies, func(r bodyRuns) bool { return r.isAt(s) })
	}
	var functions []string
	for _, r := range runsOfBodies {
		if !slices.Contains(functions, r.function) {
			functions = append(functions, r.function)
			add(r.function, false, known)
			add(r.function, true, known)
		}
	}
	var names []string // of the calls
	for _, c := range wayCalls {
		for turn := range turns {
			made := guest.Call{Name: c.call.Name, Args: slices.Clone(c.call.Args)}
			if c.with != nil {
				c.with(turn, &made, func(name string) guest.Arg { return result(slices.Index(names, name) + turn) })
			}
			names, task.Calls = append(names, c.name), append(task.Calls, made)
		}
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	if r.Done.Lost != 0 || len(r.Refused) > 0 {
		t.Errorf("%d hits were lost, %d probes refused", r.Done.Lost, len(r.Refused))
	}
	for i, got := range r.Child.Results {
		if want := wayCalls[i/turns].returns; got != want && (want != anything || got < 0) {
			t.Errorf("%s returned %d", names[i], got)
		}
	}
	// hits of each body, by all ways and by the entry alone, in each call.
	type key struct {
		body, call int
		entry      bool
	}
	hits := make(map[key]int)
	at := -1
	for i := range r.Hits {
		h := &r.Hits[i]
		if h.Task != r.Child.Task {
			continue
		}
		if h.Plan == 0 {
			if n := binary.NativeEndian.Uint64(h.Data[0]); n >= guest.FirstMark {
				at = int(n - guest.FirstMark)
			}
			continue
		}
		for body, x := range runsOfBodies {
			if x.isAt(plans[h.Plan].Sites[h.Site].Site) {
				hits[key{body, at, h.Plan%2 == 0}]++
			}
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "function\tcontainer\tline\tways\tcall\truns\thits\tby the entry alone")
	several := make(map[bodyRuns]bool)
	for body, x := range runsOfBodies {
		ways, again, known := 0, false, true
		for n := 1; n < len(plans); n += 2 {
			for i := range plans[n].Sites {
				if s := plans[n].Sites[i].Site; x.isAt(s) {
					ways++
					again, known = again || s.Way.Again, known && s.Way.Unknown == ""
				}
			}
		}
		all, entry, want := 0, 0, 0
		for i, name := range names {
			if name != x.call {
				continue
			}
			n := hits[key{body, i, false}]
			all, entry, want = all+n, entry+hits[key{body, i, true}], want+x.runs
			// Elsewhere not all of them are inlined, and a table of a switch may not be found.
			if n != x.runs && (ways > 0 && known || k.GOARCH == "amd64") {
				t.Errorf("%s in %s, line %d: %d hits in %s, turn %d, want %d", x.function, x.in, x.line, n, name, i%turns, x.runs)
			}
		}
		if want == 0 && x.runs > 0 {
			t.Errorf("no call is named %q", x.call)
		}
		if ways > 1 && x.runs > 0 && !again {
			several[bodyRuns{in: x.in, function: x.function, line: x.line}] = true
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\n", x.function, x.in, x.line, ways, x.call, want, all, entry)
	}
	_ = w.Flush()
	t.Logf("%d bodies with several ways in; %d hits in all\n%s", len(several), len(r.Hits), &text)
	if len(several) < wanted {
		t.Errorf("only %d bodies with several ways in were run", len(several))
	}
	// The entry in the debug information is where fdget_pos has failed.
	if lost := hits[key{0, slices.Index(names, "lseek"), true}]; lost != 0 {
		t.Errorf("%v: %d hits of the entry alone", runsOfBodies[0], lost)
	}
}

func (r *bodyRuns) isAt(s *dwarfloc.Site) bool {
	return s.Kind == dwarfloc.SiteInline && s.Symbol == r.in && s.Function == r.function && s.CallLine == r.line
}
