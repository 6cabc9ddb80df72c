package guest_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
)

// summaryCommands are commands that count in a kernel, hits and whole runs, take its stacks, and trace it together with a program. The task
// makes one call ioctl(fd, 18193, 4660).
func summaryCommands(tool, image string) [][]string {
	run := func(args ...string) []string {
		return append(append([]string{tool}, args...), "--", "/init", guest.Calls)
	}
	return [][]string{
		run("stat", "--no-cache", "-k", image, "module=tun;tun_chr_ioctl cmd arg", "--by", "cmd,comm", "--sum", "arg", "--hist", "arg"),
		run("trace", "--no-cache", "-k", image, "--stack=both", "do_sys_openat2 dfd"),
		run("stat", "--no-cache", "-k", image, "--span", "module=tun;tun_chr_ioctl cmd", "--by", "cmd", "--if", "$duration < 100s && cmd == 18193"),
		{tool, "trace", "--no-cache", "-x", tool, "main.main", "-k", image, "do_sys_openat2 dfd", "--", tool, "--version"},
	}
}

var (
	ioctlRow   = regexp.MustCompile(`(?m)^ +1 +4660 +4660 +4660\.0 +4660 +18193 +init$`)
	firstLine  = regexp.MustCompile(`(?m)^        do_sys_openat2\+0x[0-9a-f] at \S+:\d+ \[kernel\]$`)
	kernelLine = regexp.MustCompile(`(?m)^        do_syscall_64(\+0x[0-9a-f]+| inlined) at \S+:\d+ \[kernel\]$|^        el0_svc\S* at \S+:\d+ \[kernel\]$`)
	// The process may have ended before its mappings were read.
	userLine = regexp.MustCompile(`(?m)^        (0x[0-9a-f]+|.* \[init\])$`)
	runRow   = regexp.MustCompile(`(?m)^ +1( +[0-9.]+(ns|µs|ms|s)){4} +18193$`)
	// Go's runtime opens files before main.
	together = regexp.MustCompile(`(?ms)^ *\d+\.\d{6}  prolog-dump +\d+  do_sys_openat2( at do_sys_openat2\+0x8)?  dfd=-100$.*^ *\d+\.\d{6}  prolog-dump +\d+  main\.main\b`)
)

func checkSummaries(t *testing.T, outputs []guest.Output) {
	t.Helper()
	for i, want := range [][]*regexp.Regexp{{ioctlRow}, {firstLine, kernelLine, userLine}, {runRow}, {together}} {
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
