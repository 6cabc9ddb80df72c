// Package fault writes a report of a fault: what is to be known of the tool, the machine, an image and an answer, without what is nobody's
// business.
package fault

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/kernelfiles"
	"github.com/bpfprologue/bpfprologue/internal/private"
	"github.com/bpfprologue/bpfprologue/internal/terminal"
	"github.com/bpfprologue/bpfprologue/probe"
)

// most is how much of an answer is in a report: what is wrong is rarely past it, and forms take no more.
const most = 50_000

// Report is what a report is made of.
type Report struct {
	Version    string
	Flags      []string // that were set
	Definition string   // "": none
	Open       func() (*dwarfloc.Image, error)
	Answer     func(w io.Writer) error // to the definition, about the image that Open has opened
}

// Write writes a report.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Report of a fault in prolog-dump\n\nWhat did you expect, and what happened instead?\n\n\n" +
		"(Below are versions, settings of the kernel, and an answer of the tool. The environment, home directories, names of users and\n" +
		"machines, and what programs hold in memory are not. Names of functions, variables and source files are.)\n\n")
	terminal.Fprintf(&b, "## Tool\n\n- %s\n", r.Version)
	if len(r.Flags) > 0 {
		terminal.Fprintf(&b, "- flags: `%s`\n", strings.Join(r.Flags, " "))
	}
	b.WriteString("\n## Machine\n\n")
	writeMachine(&b)
	if r.Definition == "" {
		b.WriteString("\nNo definition was given. If one shows the fault: prolog-dump -k IMAGE bug 'FUNC ARG...'\n")
	} else if err := r.answer(&b); err != nil {
		var at *probe.Error
		b.WriteString("\n## Error\n\n")
		for line := range strings.Lines(err.Error()) {
			terminal.Fprintf(&b, "    %s\n", strings.TrimSuffix(line, "\n"))
		}
		if errors.As(err, &at) {
			terminal.Fprintf(&b, "    (column %d of the definition)\n", at.Column)
		}
	}
	for line := range strings.Lines(private.Own().Text(b.String())) {
		terminal.Fprintf(w, "%s\n", strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// answer writes what is known of the image, and the answer to the definition.
func (r *Report) answer(b *strings.Builder) error {
	terminal.Fprintf(b, "\n## Definition\n\n    %s\n", r.Definition)
	img, err := r.Open()
	if err != nil {
		return err
	}
	b.WriteString("\n## Image\n\n")
	writeImage(b, img)
	answer := &limited{left: most}
	err = r.Answer(answer)
	if answer.left < 0 {
		answer.text.WriteString("...\n")
		err = nil
	}
	if err != nil {
		return err
	}
	b.WriteString("\n## Answer, with --explain\n\n```\n" + answer.text.String() + "```\n")
	return nil
}

// limited keeps the first bytes of what is written, and ends the work then.
type limited struct {
	text strings.Builder
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left < len(p) {
		l.text.WriteString(strings.ToValidUTF8(string(p[:max(l.left, 0)]), ""))
		l.left = -1
		return 0, io.ErrShortWrite
	}
	l.left -= len(p)
	return l.text.Write(p)
}

func writeImage(b *strings.Builder, img *dwarfloc.Image) {
	terminal.Fprintf(b, "- %s, %s, build ID %s\n", filepath.Base(img.Path()), img.Arch().Name, orNone(img.BuildID()))
	if by := inside.AnsweredBy(img); by != "" {
		terminal.Fprintf(b, "- answered by %s\n", by)
	}
	file := inside.File(img)
	if file == nil {
		return
	}
	if path := file.DebugPath(); path != "" {
		terminal.Fprintf(b, "- its debug information is in another file, %s\n", filepath.Base(path))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// capabilities are those that probes need, by their bits in /proc/self/status.
var capabilities = []struct {
	name string
	bit  uint
}{{"CAP_SYS_ADMIN", 21}, {"CAP_PERFMON", 38}, {"CAP_BPF", 39}, {"CAP_SYS_PTRACE", 19}}

// kernelSettings are files of the kernel that decide what probes may do.
var kernelSettings = []string{
	"/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/unprivileged_bpf_disabled", "/proc/sys/kernel/kptr_restrict", "/proc/sys/kernel/kprobes-optimization",
	"/proc/sys/net/core/bpf_jit_enable", "/proc/sys/net/core/bpf_jit_harden", "/sys/kernel/security/lockdown", "/sys/kernel/debug/kprobes/enabled",
}

func writeMachine(b *strings.Builder) {
	release, err := kernelfiles.RunningRelease()
	if err != nil {
		release = err.Error()
	}
	terminal.Fprintf(b, "- Linux %s, %s, %d processors\n", release, runtime.GOARCH, runtime.NumCPU())
	if name := lineOf("/etc/os-release", "PRETTY_NAME="); name != "" {
		terminal.Fprintf(b, "- %s\n", strings.Trim(name, `"`))
	}
	if set, err := strconv.ParseUint(lineOf("/proc/self/status", "CapEff:"), 16, 64); err == nil {
		var has []string
		for _, c := range capabilities {
			if set&(1<<c.bit) != 0 {
				has = append(has, c.name)
			}
		}
		terminal.Fprintf(b, "- capabilities: %s\n", orNone(strings.Join(has, ", ")))
	}
	for _, path := range kernelSettings {
		text, err := os.ReadFile(path)
		switch {
		case err == nil:
			terminal.Fprintf(b, "- %s: %s\n", path, strings.TrimSpace(string(text)))
		case errors.Is(err, os.ErrPermission):
			terminal.Fprintf(b, "- %s: not readable\n", path)
		}
	}
}

// lineOf returns what follows a word at the beginning of a line of a file, or "".
func lineOf(path, word string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
