package guest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bpfprologue/bpfprologue/internal/proof/film"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// storyFile is the recording that the site begins with.
const storyFile = "../../../docs/kmalloc.svg"

// story is what somebody asks who wonders about large allocations. The guest runs the commands; those of it that read the image
// only could run anywhere.
var story = []struct {
	note     string
	args     []string
	traced   bool     // it needs a workload, and root
	workload []string // arguments of init
	lines    int      // of what it prints, at most
}{
	{note: "kmalloc has no code of its own. Where is it, and where is its size there?", args: []string{"vars", "kmalloc"}},
	{note: "the first of 1,810 places, the callers, and what size is there", args: []string{"--sites", "kmalloc size"}, lines: 12},
	{note: "who allocates more than 8 KB? Counted in the kernel", args: []string{"stat", "--if", "size > 8192", "kmalloc size", "--by", "caller", "--sum", "size"}, traced: true, workload: []string{guest.Calls}},
	{note: "and from where?", args: []string{"trace", "-q", "--stack", "--if", "size > 8192", "kmalloc size"}, traced: true, workload: []string{guest.Calls}, lines: 8},
}

// TestStory records the story in a live kernel, and compares it with the recording, but for times and numbers of tasks.
// UPDATE=1 writes the recording.
func TestStory(t *testing.T) {
	t.Parallel()
	ks := kernels(t)
	at := slices.IndexFunc(ks, func(k testKernel) bool { return k.GOARCH == "amd64" && k.old() })
	if at < 0 {
		t.Skip("no kernel of the story")
	}
	k := ks[at]
	dir := t.TempDir()
	testenv.Build(t, dir, k.static(), "github.com/bpfprologue/bpfprologue/cmd/prolog-dump")
	const tool, image = "/prolog-dump", "/debug/vmlinux"
	task := &guest.Task{
		Limit: 12 * time.Minute,
		Files: map[string]string{tool: filepath.Join(dir, "prolog-dump"), image: k.Vmlinux},
		Calls: conditionCalls(0),
	}
	steps := make([]film.Step, len(story))
	for i, s := range story {
		command := append([]string{tool, "-k", image, "--no-cache"}, s.args...)
		shown := "prolog-dump -k vmlinux " + quoted(s.args)
		if s.traced {
			command = append(append(command, "--", "/init"), s.workload...)
			shown = "sudo " + shown + " -- ./job"
		}
		task.Commands = append(task.Commands, command)
		steps[i].Note, steps[i].Command = s.note, shown
	}
	r, err := k.Boot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range story {
		o := &r.Outputs[i]
		if o.Failed != "" {
			t.Fatalf("%q: %s\n%s", s.args, o.Failed, o.Err)
		}
		lines := slices.Collect(strings.Lines(o.Out))
		if s.lines > 0 && len(lines) > s.lines {
			lines = append(lines[:s.lines], "...\n")
		}
		steps[i].Output = strings.Join(lines, "")
		t.Logf("$ %s\n%s%s", steps[i].Command, o.Err, steps[i].Output)
	}
	svg := film.SVG("Who allocates more than 8 KB?", 104, steps)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(storyFile, []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(storyFile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := film.Texts(svg)
	if err != nil {
		t.Fatal(err)
	}
	want, err := film.Texts(string(kept))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] = masked(got[i])
	}
	for i := range want {
		want[i] = masked(want[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the recording shows\n%s\nand now the tool prints\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// differs is what two sessions need not have in common: times, and numbers of tasks.
var differs = regexp.MustCompile(`^ *\d+\.\d{6}  (\S+) +\d+|in \d+\.\d+ s`)

func masked(line string) string { return differs.ReplaceAllString(line, "TIME $1") }

// quoted returns arguments as a shell reads them.
func quoted(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; strings.ContainsAny(a, " >$") {
			out[i] = "'" + a + "'"
		}
	}
	return strings.Join(out, " ")
}
