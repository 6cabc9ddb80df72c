package guest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// summaryCommands are commands that count in a kernel, and take its stacks. The task makes one call
// ioctl(fd, 18193, 4660).
func summaryCommands(tool, image string) [][]string {
	run := func(args ...string) []string {
		return append(append([]string{tool}, args...), "--", "/init", guest.Calls)
	}
	return [][]string{
		run("stat", "--no-cache", "-k", image, "module=tun;tun_chr_ioctl cmd arg", "--by", "cmd,comm", "--sum", "arg", "--hist", "arg"),
		run("trace", "--no-cache", "-k", image, "--stack=both", "do_sys_openat2 dfd"),
	}
}

var (
	ioctlRow   = regexp.MustCompile(`(?m)^ +1 +4660 +4660 +4660\.0 +4660 +18193 +init$`)
	firstLine  = regexp.MustCompile(`(?m)^        do_sys_openat2\+0x[0-9a-f] at \S+:\d+ \[kernel\]$`)
	kernelLine = regexp.MustCompile(`(?m)^        do_syscall_64(\+0x[0-9a-f]+| inlined) at \S+:\d+ \[kernel\]$|^        el0_svc\S* at \S+:\d+ \[kernel\]$`)
	// The process may have ended before its mappings were read.
	userLine = regexp.MustCompile(`(?m)^        (0x[0-9a-f]+|.* \[init\])$`)
)

func checkSummaries(t *testing.T, outputs []guest.Output) {
	t.Helper()
	for i, want := range [][]*regexp.Regexp{{ioctlRow}, {firstLine, kernelLine, userLine}} {
		o := &outputs[i]
		t.Logf("%s%s", o.Err, o.Out[:min(len(o.Out), 3000)])
		for _, w := range want {
			if !w.MatchString(o.Out) {
				t.Errorf("command %d: no %v in\n%s", i, w, o.Out)
			}
		}
	}
	if !strings.Contains(outputs[0].Out, "  4096 to 8191  1  #") {
		t.Errorf("no histogram in\n%s", outputs[0].Out)
	}
}
