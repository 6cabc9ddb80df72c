package guest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/btfinline"
	"github.com/bpfprologue/bpfprologue/internal/proof/agree"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
	"github.com/bpfprologue/bpfprologue/pack"
)

// TestWithoutDebugInformation traces live kernels in guests that have no file with debug information. GUESTS_FULL=1 boots
// all kernels, otherwise the newest one.
func TestWithoutDebugInformation(t *testing.T) {
	if os.Getenv("GUESTS_FULL") == "1" {
		eachKernel(t, traceWithoutDebug)
		return
	}
	t.Parallel()
	all := kernels(t)
	newest := slices.IndexFunc(all, func(k testKernel) bool { return !k.old() })
	if len(all) > 0 {
		traceWithoutDebug(t, all[max(newest, 0)])
	}
}

func traceWithoutDebug(t *testing.T, k testKernel) {
	t.Helper()
	dir := t.TempDir()
	run := func(env []string, name string, args ...string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Env = append(c.Environ(), env...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	const path = "github.com/bpfprologue/bpfprologue/"
	own := filepath.Join(dir, "own")
	testenv.Build(t, own, nil, path+"cmd/prolog-dump")
	// The example carries the kernel's pack, and the tool finds it in a directory.
	img := testenv.Open(t, k.Vmlinux)
	id := img.BuildID()
	small := filepath.Join(dir, "small.pack")
	run(nil, own, "pack", "write", "--no-cache", "--no-types", "-o", small, k.Vmlinux, "kfree_skb", "kfree_skb_reason", "sk_skb_reason_drop", "vfs_read", "get_page")
	here, err := filepath.Abs("../../../examples/fleet/packs")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, id+pack.Extension): small}})
	if err != nil {
		t.Fatal(err)
	}
	overlaid := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlaid, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Build(t, dir, k.static(), "-overlay", overlaid, path+"cmd/prolog-dump", path+"examples/fleet")
	const tool = "/prolog-dump"
	trace := func(args ...string) []string {
		return append(append([]string{tool}, args...), "--", "/init", guest.Calls)
	}
	// What the kernel's build would write: types, with .BTF.inline.
	section, sum, err := btfinline.Of(t.Context(), img, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(sum)
	typed, err := agree.InlineImage(img, section)
	if err != nil {
		t.Fatal(err)
	}
	inline := filepath.Join(dir, "inline")
	if err := os.WriteFile(inline, typed, 0o600); err != nil {
		t.Fatal(err)
	}
	freed := "kfree_skb"
	if k.version() >= linux(7, 2) {
		freed = "kfree_skb_reason" // what a socket calls that is closed, and kfree_skb too
	}
	unread := guest.Arg{Memory: []byte("\x01\x00\x00unread")} // the address of a Unix socket without a file
	task := &guest.Task{
		KASLR: true, Limit: 4 * time.Minute, Module: "/tun.ko",
		Files: map[string]string{tool: filepath.Join(dir, "prolog-dump"), "/fleet": filepath.Join(dir, "fleet"), "/tun.ko": k.Module, "/packs/" + id + pack.Extension: small, "/inline": inline},
		Calls: []guest.Call{
			call("openat", number(-100), text("/dev/net/tun"), number(unix.O_RDWR), number(0)),
			call("ioctl", result(0), number(18193), number(4660)),
			call("openat", number(-100), text("/proc/version"), number(unix.O_RDONLY), number(0)),
			call("read", result(2), memory(64), number(37)),
			// A datagram that nobody has read is freed with its receiver.
			call("socket", number(unix.AF_UNIX), number(unix.SOCK_DGRAM), number(0)),
			call("bind", result(4), unread, number(9)),
			call("socket", number(unix.AF_UNIX), number(unix.SOCK_DGRAM), number(0)),
			call("sendto", result(6), memory(11), number(11), number(0), unread, number(9)),
			call("close", result(4)),
		},
		Commands: [][]string{
			trace("trace", "vfs_read file->f_path.dentry->d_name.name:string count"),
			trace("trace", "vfs_read%return bytes=$retval"),
			trace("trace", "module=tun;tun_chr_ioctl cmd arg"),
			trace("stat", "vfs_read count", "--by", "count"),
			{"/fleet", "/init", guest.Calls},
			trace("trace", "--pack-dir", "/packs", freed+" skb->len"),
			// What examples/kubernetes gives to a container is enough.
			append([]string{"/init", guest.Limited, "BPF,PERFMON,SYSLOG"}, trace("trace", "--no-cache", "--pack-dir", "/packs", freed+" skb->len")...),
			trace("trace", "--btf=/inline", freed+" skb->len"),
			{tool, "--pack-dir", "/packs", "--sites", "--attachable", "vfs_read file->f_path.dentry->d_name.name:string"},
		},
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`(?m)vfs_read( at \S+)?  name="version"  count=37$`, `(?m)vfs_read( at \S+)?  bytes=37$`,
		`(?m)  tun_chr_ioctl( at \S+)?  cmd=18193  arg=4660$`, `(?m)^ *\d+ +37$|(?m)^ *37 +\d+$`,
		`(?m)^init: .*kfree_skb.*: 11 bytes$|(?m)^init: sk_skb_reason_drop.*: 11 bytes$`, `(?m)  kfree_skb(_reason)? inlined in .*  len=11$`,
		`(?m)  kfree_skb(_reason)? inlined in .*  len=11$`, `(?m)  kfree_skb(_reason)? inlined in .*  len=11$`, `(?m)^vfs_read\S* .*entry of vfs_read$`,
	} {
		if i >= len(r.Outputs) {
			t.Fatalf("%d commands ended, of %d", len(r.Outputs), len(task.Commands))
		}
		o := &r.Outputs[i]
		t.Logf("%q:\n%s%s", task.Commands[i], o.Err, o.Out)
		if o.Failed != "" || !regexp.MustCompile(want).MatchString(o.Out) {
			t.Errorf("%q: %s: no %s", task.Commands[i], o.Failed, want)
		}
	}
}
