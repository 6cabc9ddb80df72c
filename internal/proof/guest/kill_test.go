package guest_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestKilled kills the tool again and again while it makes and ends kprobes, for which it changes settings of the kernel: the next
// process puts them back, and no probe stays. GUEST_KILLS is how often.
func TestKilled(t *testing.T) {
	t.Parallel()
	k := kernelsOfPC(t)[0]
	dir := t.TempDir()
	tool := filepath.Join(dir, "prolog-dump")
	testenv.Build(t, tool, k.static(), "github.com/bpfprologue/bpfprologue/cmd/prolog-dump")
	// Linux 6.1 has no links for many kprobes, so each site of this function has its own.
	const function = "fdget_pos"
	packed := filepath.Join(dir, "kernel.pack")
	if out, err := exec.Command(tool, "pack", "write", "--no-cache", "-o", packed, k.Vmlinux, function).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rounds := int(setting(t, "GUEST_KILLS", either(100, 8)))
	task := &guest.Task{
		KASLR: true, Limit: time.Minute + time.Duration(rounds)*10*time.Second,
		Files: map[string]string{"/prolog-dump": tool, "/kernel.pack": packed},
		Commands: [][]string{{
			"/init", guest.Kill, strconv.Itoa(rounds), "/prolog-dump", "--no-cache", "-k", "/kernel.pack", "trace", function, "--", "/init", guest.Workload, "50ms",
		}},
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	var got guest.Killed
	if o := &r.Outputs[0]; o.Failed != "" || json.Unmarshal([]byte(o.Out), &got) != nil {
		t.Fatalf("%s\n%s%s", o.Failed, o.Out, o.Err)
	}
	t.Logf("%+v", got)
	for _, w := range got.Wrong {
		t.Error(w)
	}
	if got.Probes > 0 || got.Left < rounds/20 {
		t.Errorf("%d probes are there; settings were left %d times", got.Probes, got.Left)
	}
}
