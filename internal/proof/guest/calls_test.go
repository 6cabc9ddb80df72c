package guest_test

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// want is what one definition must fetch during a call: every time one of these hits, and
// each of them at least once.
type want struct {
	def   string
	in    string // the only symbol whose sites are probed, or "" for all
	hits  []string
	first version // of the kernels tested, the first and the last that have such a site, if not all have
	last  version
	arch  string // only kernels for this one have, or "" for all
}

func (w *want) isOf(k testKernel) bool {
	v := k.version()
	return w.first <= v && (w.last == 0 || v <= w.last) && (w.arch == "" || w.arch == k.GOARCH)
}

// version is a version of Linux, as linux returns it.
type version int

func linux(major, minor int) version { return version(major<<8 | minor) }

func hit(def string, hits ...string) want { return want{def: def, hits: hits} }

// on is for functions that are absent or different in kernels for other architectures.
func on(arch string, w want) want {
	w.arch = arch
	return w
}

// upTo is for functions that kernels after this version do not have, or have otherwise.
func upTo(v version, w want) want {
	w.last = v
	return w
}

// since is for functions that kernels before this version do not have.
func since(v version, w want) want {
	w.first = v
	return w
}

// within is for the sites in one symbol, for functions that are inlined everywhere.
func within(symbol, def string, hits ...string) want { return want{def: def, in: symbol, hits: hits} }

// anything is any result that is not an error.
const anything = -1 << 62

const name = "/tmp/known-file"

func number(n int64) guest.Arg  { return guest.Arg{Number: uint64(n)} }
func text(s string) guest.Arg   { return guest.Arg{Memory: append([]byte(s), 0)} }
func memory(n int) guest.Arg    { return guest.Arg{Memory: make([]byte, n)} }
func result(call int) guest.Arg { return guest.Arg{Result: call + 1} }
func words(n ...uint64) guest.Arg {
	var b []byte
	for _, w := range n {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return guest.Arg{Memory: b}
}

// vector is a struct iovec for each length.
func vector(lengths ...uint64) guest.Arg {
	a := guest.Arg{Pointers: make(map[int][]byte)}
	for i, n := range lengths {
		a.Memory = binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(a.Memory, 0), n)
		a.Pointers[16*i] = make([]byte, n)
	}
	return a
}

func call(name string, args ...guest.Arg) guest.Call { return guest.Call{Name: name, Args: args} }

// From linux/futex.h: FUTEX_WAKE_OP, a call with six numbers, and FUTEX_PRIVATE_FLAG.
const (
	futexWakeOp  = 5
	futexPrivate = 128
)

// file is the file that is opened first, with a descriptor that the calls choose.
const file = 77

const (
	openCall   = 0
	socketCall = 26
)

// valueTests are system calls with the values that the kernel's functions receive, derived
// from the arguments and the sources of Linux 6.1.
//
// openCall and socketCall are the indices of two of them.
var valueTests = []struct {
	call    guest.Call
	returns int64
	wants   []want
}{
	{call("openat", number(-100), text(name), number(unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC), number(0o640)), anything, []want{
		// The kernel adds O_LARGEFILE, and S_IFREG.
		on("amd64", hit("do_sys_openat2 dfd filename:ustring how->flags:x64 how->mode", `dfd=-100 filename="/tmp/known-file" flags=0x88042 mode=416`)),
		on("arm64", hit("do_sys_openat2 dfd filename:ustring how->flags:x64 how->mode", `dfd=-100 filename="/tmp/known-file" flags=0xa0042 mode=416`)),
		upTo(linux(6, 12), hit("do_filp_open dfd pathname->name:string op->mode", `dfd=-100 name="/tmp/known-file" mode=33184`)),
		since(linux(7, 2), hit("do_file_open dfd pathname->name:string op->mode", `dfd=-100 name="/tmp/known-file" mode=33184`)),
		upTo(linux(6, 12), hit("getname_flags filename:ustring flags", `filename="/tmp/known-file" flags=0`)),
		since(linux(7, 2), hit("getname_flags filename:ustring flags", `filename="/tmp/known-file" flags=1`)), // LOOKUP_FOLLOW
	}},
	{call("dup3", result(openCall), number(file), number(unix.O_CLOEXEC)), file, []want{
		hit("ksys_dup3 newfd flags", "newfd=77 flags=524288"),
		hit("do_dup2 fd flags", "fd=77 flags=524288"),
		hit("__set_open_fd fd", "fd=77"),
		hit("__se_sys_dup3 newfd flags", "newfd=77 flags=524288"),
		hit("__do_sys_dup3 newfd flags", "newfd=77 flags=524288"),
	}},
	{call("write", number(file), memory(777), number(777)), 777, []want{
		// Threads share the file table, and two numbers the file: FDPUT_FPUT and FDPUT_POS_UNLOCK.
		upTo(linux(6, 1), within("ksys_write", "fdput_pos f.file->f_path.dentry->d_name.name:string f.flags", `name="known-file" flags=3`)),
		within("vfs_write", "file_start_write file->f_path.dentry->d_name.name:string", `name="known-file"`),
		within("vfs_write", "file_end_write file->f_path.dentry->d_name.name:string", `name="known-file"`),
		hit("ksys_write fd count", "fd=77 count=777"),
		hit("vfs_write file->f_path.dentry->d_name.name:string file->f_path.dentry->d_name.len count pos[0]", `name="known-file" len=10 count=777 pos=0`),
		hit("rw_verify_area read_write ppos[0] count file->f_path.dentry->d_name.name:string", `read_write=1 ppos=0 count=777 name="known-file"`),
		hit("new_sync_write len", "len=777"),
		upTo(linux(6, 1), hit("generic_file_write_iter iocb->ki_pos from->count", "ki_pos=0 count=777")),
		hit("generic_perform_write i->count", "count=777"),
		hit("shmem_write_begin pos len", "pos=0 len=777"),
		hit("shmem_write_end pos len copied", "pos=0 len=777 copied=777"),
		hit("ksys_write%return $retval:s64", "retval=777"),
		hit("vfs_write%return $retval:s64", "retval=777"),
	}},
	{call("pread64", number(file), memory(300), number(300), number(5)), 300, []want{
		hit("ksys_pread64 fd count pos", "fd=77 count=300 pos=5"),
		hit("__se_sys_pread64 fd count pos", "fd=77 count=300 pos=5"),
		hit("__do_sys_pread64 fd count pos", "fd=77 count=300 pos=5"),
		hit("vfs_read file->f_path.dentry->d_name.name:string count pos[0]", `name="known-file" count=300 pos=5`),
		hit("rw_verify_area read_write ppos[0] count file->f_path.dentry->d_name.name:string", `read_write=0 ppos=5 count=300 name="known-file"`),
		hit("new_sync_read len", "len=300"),
		hit("shmem_file_read_iter iocb->ki_pos to->count", "ki_pos=5 count=300"),
		hit("vfs_read%return $retval:s64", "retval=300"),
	}},
	{call("pwrite64", number(file), memory(123), number(123), number(4096)), 123, []want{
		hit("ksys_pwrite64 fd count pos", "fd=77 count=123 pos=4096"),
		hit("__se_sys_pwrite64 fd count pos", "fd=77 count=123 pos=4096"),
		hit("vfs_write file->f_path.dentry->d_name.name:string file->f_path.dentry->d_name.len count pos[0]", `name="known-file" len=10 count=123 pos=4096`),
		hit("shmem_write_begin pos len", "pos=4096 len=123"),
	}},
	{call("lseek", number(file), number(40), number(unix.SEEK_SET)), 40, []want{
		hit("ksys_lseek fd offset whence", "fd=77 offset=40 whence=0"),
		hit("__se_sys_lseek fd offset whence", "fd=77 offset=40 whence=0"),
		hit("__do_sys_lseek fd offset whence", "fd=77 offset=40 whence=0"),
		hit("shmem_file_llseek offset whence", "offset=40 whence=0"),
		on("amd64", hit("ksys_lseek%return $retval:s64", "retval=40")),
	}},
	{call("read", number(file), memory(200), number(200)), 200, []want{
		upTo(linux(6, 1), within("ksys_read", "fdput_pos f.file->f_path.dentry->d_name.name:string f.flags", `name="known-file" flags=3`)),
		hit("ksys_read fd count", "fd=77 count=200"),
		upTo(linux(6, 1), hit("__fdget_pos fd", "fd=77")),
		hit("vfs_read file->f_path.dentry->d_name.name:string count pos[0]", `name="known-file" count=200 pos=40`),
		hit("new_sync_read len", "len=200"),
		hit("ksys_read%return $retval:s64", "retval=200"),
	}},
	{call("preadv", number(file), vector(30, 31, 32), number(3), number(9), number(0)), 93, []want{
		hit("__do_sys_preadv fd vlen pos_l pos_h", "fd=77 vlen=3 pos_l=9 pos_h=0"),
		hit("do_preadv fd vlen pos flags", "fd=77 vlen=3 pos=9 flags=0"),
		hit("vfs_readv file->f_path.dentry->d_name.name:string vlen pos[0] flags", `name="known-file" vlen=3 pos=9 flags=0`),
	}},
	{call("fallocate", number(file), number(0), number(8192), number(5000)), 0, []want{
		within("vfs_fallocate", "file_start_write file->f_path.dentry->d_name.name:string", `name="known-file"`),
		hit("ksys_fallocate fd mode offset len", "fd=77 mode=0 offset=8192 len=5000"),
		hit("vfs_fallocate mode offset len", "mode=0 offset=8192 len=5000"),
		hit("shmem_fallocate mode offset len", "mode=0 offset=8192 len=5000"),
	}},
	{call("ftruncate", number(file), number(6000)), 0, []want{
		upTo(linux(6, 12), hit("do_sys_ftruncate fd length small", "fd=77 length=6000 small=1")),
		since(linux(7, 2), hit("ksys_ftruncate fd length", "fd=77 length=6000")),
		hit("__do_sys_ftruncate fd length", "fd=77 length=6000"),
		hit("do_truncate length dentry->d_name.name:string", `length=6000 name="known-file"`),
		hit("notify_change attr->ia_size", "ia_size=6000"),
		hit("shmem_setattr attr->ia_size", "ia_size=6000"),
	}},
	{call("fchmod", number(file), number(0o604)), 0, []want{
		hit("__do_sys_fchmod fd mode", "fd=77 mode=388"),
		hit("vfs_fchmod mode", "mode=388"),
		hit("chmod_common mode path->dentry->d_name.name:string", `mode=388 name="known-file"`),
	}},
	{call("fchown", number(file), number(1234), number(4321)), 0, []want{
		hit("ksys_fchown fd user group", "fd=77 user=1234 group=4321"),
		hit("chown_common user group", "user=1234 group=4321"),
	}},
	{call("fadvise64", number(file), number(4096), number(8193), number(unix.FADV_WILLNEED)), 0, []want{
		hit("ksys_fadvise64_64 fd offset len advice", "fd=77 offset=4096 len=8193 advice=3"),
		hit("vfs_fadvise offset len advice", "offset=4096 len=8193 advice=3"),
	}},
	{call("fcntl", number(file), number(unix.F_DUPFD), number(99)), 99, []want{
		hit("do_fcntl fd cmd arg filp->f_path.dentry->d_name.name:string", `fd=77 cmd=0 arg=99 name="known-file"`),
		hit("f_dupfd from flags", "from=99 flags=0"),
		// In Linux 6.12 arg is not fetched: not-stored-yet.
		hit("__do_sys_fcntl fd cmd arg", "fd=77 cmd=0 arg=99"),
		hit("__set_open_fd fd", "fd=99"),
		hit("f_dupfd%return $retval:s32", "retval=99"),
	}},
	{call("fcntl", number(file), number(unix.F_SET_RW_HINT), words(4)), 0, []want{
		upTo(linux(6, 1), hit("fcntl_rw_hint file->f_path.dentry->d_name.name:string cmd", `name="known-file" cmd=1036`)),
		within("do_fcntl", "copy_from_user n", "n=8"),
	}},
	{call("dup3", number(file), number(78), number(0)), 78, []want{
		on("amd64", upTo(linux(6, 1), within("ksys_dup3", "array_index_mask_nospec index", "index=77"))),
	}},
	{call("open_by_handle_at", number(-100), number(0), number(unix.O_RDWR)), -int64(unix.EFAULT), []want{
		// What GCC says of flags is what the body makes of it, with O_LARGEFILE: it is reassigned.
		on("amd64", hit("__do_sys_open_by_handle_at mountdirfd", "mountdirfd=-100")),
	}},
	{call("close", number(99)), 0, []want{
		upTo(linux(6, 1), hit("close_fd fd", "fd=99")),
		hit("__clear_open_fd fd", "fd=99"),
	}},
	{call("mmap", number(0), number(12288), number(unix.PROT_READ), number(unix.MAP_PRIVATE), number(file), number(4096)), anything, []want{
		hit("ksys_mmap_pgoff addr len prot flags fd pgoff", "addr=0 len=12288 prot=1 flags=2 fd=77 pgoff=1"),
		hit("vm_mmap_pgoff addr len prot flag pgoff", "addr=0 len=12288 prot=1 flag=2 pgoff=1"),
		hit("do_mmap len prot flags pgoff", "len=12288 prot=1 flags=2 pgoff=1"),
		hit("mmap_region len pgoff", "len=12288 pgoff=1"),
	}},
	{call("sendfile", number(file), number(file), words(16), number(64)), 64, []want{
		upTo(linux(6, 1), within("do_sendfile", "file_start_write file->f_path.dentry->d_name.name:string", `name="known-file"`)),
		hit("do_sendfile out_fd in_fd ppos[0] count max", "out_fd=77 in_fd=77 ppos=16 count=64 max=0"),
	}},
	{call("mkdirat", number(-100), text("/tmp/a-folder"), number(0o751)), 0, []want{
		upTo(linux(6, 12), within("do_mkdirat", "mode_strip_umask dir->i_mode:u16", "i_mode=17407")), // S_IFDIR and 01777
		upTo(linux(6, 12), hit("do_mkdirat dfd mode name->name:string", `dfd=-100 mode=489 name="/tmp/a-folder"`)),
		since(linux(7, 2), within("filename_mkdirat", "mode_strip_umask dir->i_mode:u16", "i_mode=17407")),
		since(linux(7, 2), hit("filename_mkdirat dfd mode name->name:string", `dfd=-100 mode=489 name="/tmp/a-folder"`)),
		hit("vfs_mkdir mode dentry->d_name.name:string", `mode=489 name="a-folder"`),
	}},
	{call("symlinkat", text("to-somewhere"), number(-100), text("/tmp/a-link")), 0, []want{
		upTo(linux(6, 12), hit("do_symlinkat newdfd from->name:string to->name:string", `newdfd=-100 name="to-somewhere" name_2="/tmp/a-link"`)),
		since(linux(7, 2), hit("filename_symlinkat newdfd from->name:string to->name:string", `newdfd=-100 name="to-somewhere" name_2="/tmp/a-link"`)),
		hit("vfs_symlink oldname:string dentry->d_name.name:string", `oldname="to-somewhere" name="a-link"`),
	}},
	{call("readlinkat", number(-100), text("/tmp/a-link"), memory(50), number(50)), 12, []want{
		hit("do_readlinkat dfd pathname:ustring bufsiz", `dfd=-100 pathname="/tmp/a-link" bufsiz=50`),
	}},
	{call("unlinkat", number(-100), text("/tmp/a-link"), number(0)), 0, []want{
		upTo(linux(6, 12), hit("do_unlinkat dfd name->name:string", `dfd=-100 name="/tmp/a-link"`)),
		since(linux(7, 2), hit("filename_unlinkat dfd name->name:string", `dfd=-100 name="/tmp/a-link"`)),
		hit("vfs_unlink dentry->d_name.name:string", `name="a-link"`),
	}},
	{call("memfd_create", text("my-memory"), number(unix.MFD_CLOEXEC)), anything, []want{
		upTo(linux(6, 12), hit("__shmem_file_setup name:string size flags", `name="memfd:my-memory" size=0 flags=2097152`)),
		since(linux(7, 2), hit("__shmem_file_setup name:string size flags", `name="memfd:my-memory" size=0 flags={__vma_flags=[2097152]}`)),
	}},
	{call("eventfd2", number(31), number(unix.EFD_CLOEXEC)), anything, []want{
		within("do_eventfd", "atomic_set i", "i=1"),
		hit("do_eventfd count flags", "count=31 flags=524288"),
	}},
	{call("socket", number(unix.AF_INET), number(unix.SOCK_STREAM), number(0)), anything, []want{
		hit("__sys_socket family type protocol", "family=2 type=1 protocol=0"),
		hit("__sock_create family type protocol kern", "family=2 type=1 protocol=0 kern=0"),
		hit("inet_create protocol kern", "protocol=0 kern=0"),
	}},
	{call("listen", result(socketCall), number(17)), 0, []want{
		hit("__sys_listen backlog", "backlog=17"),
		hit("inet_listen backlog", "backlog=17"),
	}},
	{call("shmget", number(0x1234), number(20480), number(unix.IPC_CREAT|0o600)), anything, []want{
		within("newseg", "__refcount_add i oldp", "i=1 oldp=0x0"),
		hit("ksys_shmget key size shmflg", "key=4660 size=20480 shmflg=896"),
		hit("newseg params->key params->u.size params->flg", "key=4660 size=20480 flg=896"),
		hit("ipcget params->key params->flg", "key=4660 flg=896"),
		hit("ipc_findkey key", "key=4660"),
	}},
	{call("semget", number(0x4321), number(3), number(unix.IPC_CREAT|0o600)), anything, []want{
		hit("ksys_semget key nsems semflg", "key=17185 nsems=3 semflg=896"),
		hit("newary params->key params->u.nsems", "key=17185 nsems=3"),
	}},
	{call("msgget", number(0x2143), number(unix.IPC_CREAT|0o600)), anything, []want{
		hit("ksys_msgget key msgflg", "key=8515 msgflg=896"),
		hit("newque params->key params->flg", "key=8515 flg=896"),
	}},
	{call("futex", words(5), number(futexPrivate|futexWakeOp), number(11), number(22), words(5), number(0x1233)), 0, []want{
		hit("do_futex op val val2 val3", "op=133 val=11 val2=22 val3=4659"),
		hit("futex_wake_op nr_wake nr_wake2 op", "nr_wake=11 nr_wake2=22 op=4659"),
	}},
	{call("prlimit64", number(0), number(unix.RLIMIT_CORE), words(4096, 8192), number(0)), 0, []want{
		hit("do_prlimit resource new_rlim->rlim_cur new_rlim->rlim_max new_rlim[0]", "resource=4 rlim_cur=4096 rlim_max=8192 new_rlim={rlim_cur=4096, rlim_max=8192}"),
	}},
	{call("kill", number(0x3ffffff0), number(0)), -int64(unix.ESRCH), []want{
		hit("kill_something_info sig pid", "sig=0 pid=1073741808"),
		hit("__do_sys_kill pid sig", "pid=1073741808 sig=0"),
		hit("find_vpid nr", "nr=1073741808"),
	}},
}
