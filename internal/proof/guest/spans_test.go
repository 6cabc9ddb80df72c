package guest_test

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// Whole runs of vfs_write, and of what each pread64 runs once. Not vfs_read of many tasks: the task
// that collects the output reads it, and each of its reads would be a hit that makes more output.
var (
	writeSpan  = regexp.MustCompile(`(?m)  vfs_write(?: at \S+)?  name="null"  count=(\d+)  retval=(\d+)  \S+s$`)
	inlineSpan = regexp.MustCompile(`(?m)  (ksys_pread64|fdput|rw_verify_area) \S.*  \S+s$`)
)

// spanCalls write to a device and read from it. The task makes before calls before them.
func spanCalls(before int) []guest.Call {
	return []guest.Call{
		call("openat", number(-100), text("/dev/null"), number(unix.O_RDWR), number(0)),
		call("write", result(before), memory(4), number(1)),
		call("write", result(before), memory(4), number(2)),
		call("write", result(before), memory(4), number(3)),
		call("pwrite64", result(before), memory(4), number(4), number(0)),
		call("pread64", result(before), memory(4), number(4), number(0)),
	}
}

// spanCommands trace whole runs: of a function out of line, with what its arguments and its result are
// known to be, and of a body that is inlined. Each call is one run.
func spanCommands(tool, image string) (out [][]string) {
	for _, definition := range []string{"vfs_write name=file->f_path.dentry->d_name.name:string count", "ksys_pread64 count"} {
		out = append(out, []string{tool, "--no-cache", "-k", image, "trace", "--span", definition, "--", "/init", guest.Calls})
	}
	return out
}

func checkSpans(t *testing.T, outputs []guest.Output) {
	t.Helper()
	for _, o := range outputs {
		t.Log(o.Err, o.Out)
	}
	var runs []string
	for _, m := range writeSpan.FindAllStringSubmatch(outputs[0].Out, -1) {
		runs = append(runs, m[1]+":"+m[2])
	}
	if got, want := strings.Join(runs, " "), "1:1 2:2 3:3 4:4"; got != want {
		t.Errorf("runs of vfs_write, count:retval: %s; want %s", got, want)
	}
	if n := len(inlineSpan.FindAllString(outputs[1].Out, -1)); n != 1 {
		t.Errorf("%d runs of ksys_pread64", n)
	}
	for i := range outputs {
		if strings.Contains(outputs[i].Err, "not seen") {
			t.Errorf("unpaired: %s", outputs[i].Err)
		}
	}
}
