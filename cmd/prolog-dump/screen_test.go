package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// onScreen runs the tool on a terminal that is width characters wide, and returns what it shows.
func onScreen(t *testing.T, width int, env []string, args ...string) string {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer main.Close()
	if err := unix.IoctlSetPointerInt(int(main.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(main.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(main.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Args[0] = "prolog-dump" // testscript.Main chooses by it
	c.Path = filepath.Join(t.TempDir(), "prolog-dump")
	if err := os.Symlink(self, c.Path); err != nil {
		t.Fatal(err)
	}
	c.Env = append(os.Environ(), append([]string{"TERM=xterm", "BPFPROLOGUE_CACHE=" + t.TempDir()}, env...)...)
	c.Stdout, c.Stderr = screen, screen
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(main) // ends with EIO when the tool has ended
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// TestScreen: on a terminal there are colors unless NO_COLOR says no, a pager, and lines that fit.
func TestScreen(t *testing.T) {
	image, err := fixtures.WriteTo(t.TempDir(), "basic-gcc12-O2-dwarf5.elf")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-k", image, "--sites", "my_func_three_abcd arg1"}
	if got := onScreen(t, 200, []string{"PAGER=sed s/^/page:/"}, args...); !strings.HasPrefix(got, "page:\x1b[1mmy_func_three_abcd\x1b[0m") {
		t.Errorf("with a pager: %q", got)
	}
	if got := onScreen(t, 200, []string{"PAGER=false"}, append(args, "--no-pager")...); !strings.HasPrefix(got, "\x1b[1mmy_func_three_abcd\x1b[0m") {
		t.Errorf("--no-pager: %q", got)
	}
	got := onScreen(t, 54, []string{"PAGER=cat", "NO_COLOR=1"}, "-k", image, "funcs", "*")
	if !strings.Contains(got, "…") {
		t.Errorf("nothing is shortened:\n%s", got)
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("NO_COLOR: %q", got)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 54 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

// TestRedraw: on a terminal counts are drawn anew in their place, and in the end they stay.
func TestRedraw(t *testing.T) {
	bpfexec.RequireOrSkip(t)
	dir := t.TempDir()
	program, err := fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	got := onScreen(t, 40, []string{"NO_COLOR=1"}, "-x", program, "stat", "mix key", "--by", "site", "--interval", "100ms", "--", "sh", "-c", "echo x | "+program+" >/dev/null; sleep 0.5")
	frames := strings.Split(got, "\x1b[H")
	if len(frames) < 4 || !strings.Contains(got, "mix inlined in first\x1b[K\n") || strings.Contains(got, "\x1b[2J") {
		t.Errorf("%d frames: %q", len(frames), got)
	}
	last := frames[len(frames)-1]
	if !strings.HasPrefix(last, "\x1b[J2 hits in ") || !strings.HasSuffix(last, "   1  mix inlined in second\n") {
		t.Errorf("what stays: %q", last)
	}
	for line := range strings.Lines(strings.Join(frames[1:len(frames)-1], "")) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 40+len("\x1b[K")+len("\x1b[J") {
			t.Errorf("%d characters: %q", n, line)
		}
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.25.0", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "GOARCH", Value: "amd64"}}}
	if got, want := versionOf(info), "v1.2.3, commit 0123abcd, with changes, of 2026-01-02T03:04:05Z, go1.25.0 amd64"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
