package guest_test

import (
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// controlSizes are the sizes of the control messages that conditionCalls send. The kernel allocates so
// many bytes with sock_kmalloc, into which kmalloc is inlined, before it looks at the message.
var controlSizes = []uint64{64, 4000, 8191, 8192, 8193, 12000, 16384}

// limit is the condition's number.
const limit = 8192

// conditionCalls send control messages to nobody. The task makes before calls before them.
func conditionCalls(before int) []guest.Call {
	out := []guest.Call{call("socket", number(unix.AF_UNIX), number(unix.SOCK_DGRAM), number(0))}
	for _, n := range controlSizes {
		// struct msghdr: only the control message and its size are not 0.
		const size, control, length = 56, 32, 40
		header := make([]byte, size)
		binary.NativeEndian.PutUint64(header[length:], n)
		out = append(out, call("sendmsg", result(before), guest.Arg{Memory: header, Pointers: map[int][]byte{control: make([]byte, n)}}, number(0)))
	}
	return out
}

// kmalloc is the name of the inlined function behind kmalloc in C, which later kernels wrap.
func kmalloc(k testKernel) string {
	switch {
	case k.old():
		return "kmalloc"
	case k.version() < linux(7, 2):
		return "kmalloc_noprof"
	}
	return "_kmalloc_noprof"
}

// conditionCommands are commands that look at large allocations only. One of them attaches at all sites
// that can have any: it takes 10 s or so in the emulator.
func conditionCommands(k testKernel, tool, image string) [][]string {
	run := func(args ...string) []string {
		return append(append([]string{tool}, args...), "--", "/init", guest.Calls)
	}
	return [][]string{
		run("trace", "--no-cache", "-k", image, "sock_kmalloc size", "if=size > 8192; "+kmalloc(k)+" size"),
		run("stat", "--no-cache", "-k", image, "--if", "size > 8192", "sock_kmalloc size", "--by", "caller", "--sum", "size"),
	}
}

var (
	askedLine  = regexp.MustCompile(`(?m)^ *\d+\.\d{6}  init +\d+  sock_kmalloc(?: at \S+)?  size=(\d+)$`)
	largeLine  = regexp.MustCompile(`(?m)^ *\d+\.\d{6}  (\S+) +\d+  _?kmalloc\S* inlined in (\S+)\+0x\S+  size=(\S+)$`)
	attachedOf = regexp.MustCompile(`(?m)^if=\S.*: attached at (\d+) of (\d+) sites$`)
	neverLine  = regexp.MustCompile(`(?m)^  not at (\d+) sites: the condition never holds there$`)
	largeRow   = regexp.MustCompile(`(?m)^ +3 +36577 +8193 +12192\.\d +16384 +\S+$`)
)

// checkConditions checks that exactly the chosen sizes above the limit are reported, and that sites
// where the condition cannot hold have no probe.
func checkConditions(t *testing.T, outputs []guest.Output) {
	t.Helper()
	o := &outputs[0]
	t.Logf("a condition:\n%s%s", o.Err, o.Out)
	var want, asked, large []int
	for _, n := range controlSizes {
		want = append(want, int(n))
	}
	for _, m := range askedLine.FindAllStringSubmatch(o.Out, -1) {
		asked = append(asked, atoi(t, m[1]))
	}
	for _, m := range largeLine.FindAllStringSubmatch(o.Out, -1) {
		size := atoi(t, m[3])
		if size <= limit {
			t.Errorf("a hit for which the condition is false: %s", m[0])
		}
		if m[1] == "init" && strings.HasPrefix(m[2], "sock_kmalloc") {
			large = append(large, size)
		}
	}
	// In Linux 7.2 for arm64 GCC has split the function, and a run hits both parts.
	if asked = slices.Compact(asked); !slices.Equal(asked, want) {
		t.Errorf("sock_kmalloc was asked for %d, not %d", asked, want)
	}
	if want = slices.DeleteFunc(want, func(n int) bool { return n <= limit }); !slices.Equal(large, want) {
		t.Errorf("large sizes %d, not %d", large, want)
	}
	// In each kernel more than half of the sites have a small constant.
	all := attachedOf.FindStringSubmatch(o.Err)
	never := neverLine.FindStringSubmatch(o.Err)
	if all == nil || never == nil || atoi(t, never[1])*2 < atoi(t, all[2]) || atoi(t, never[1])+atoi(t, all[1]) > atoi(t, all[2]) {
		t.Errorf("sites without a probe: %q of %q", never, all)
	}
	o = &outputs[1]
	t.Logf("counted:\n%s%s", o.Err, o.Out)
	if !largeRow.MatchString(o.Out) || !strings.Contains(o.Out, "3 hits in ") && !strings.Contains(o.Out, "6 hits in ") {
		t.Errorf("no %v", largeRow)
	}
}
