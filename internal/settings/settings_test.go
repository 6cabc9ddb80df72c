package settings

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// files replaces the kernel's files by some of a test's.
func files(t *testing.T, values ...string) {
	dir := t.TempDir()
	realSettings, realNote := settings, note
	t.Cleanup(func() { settings, note = realSettings, realNote })
	settings, note = nil, filepath.Join(dir, "note")
	for i, v := range values {
		s := setting{filepath.Join(dir, string(rune('a'+i))), realSettings[i].hasty}
		settings = append(settings, s)
		if v != "" {
			write(t, s.path, v+"\n")
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, when string, want ...string) {
	t.Helper()
	for i, s := range settings {
		d, err := os.ReadFile(s.path)
		if got := strings.TrimSpace(string(d)); err == nil && got != want[i] || err != nil && want[i] != "" {
			t.Errorf("%s: %s is %q, %v; want %q", when, s.path, got, err, want[i])
		}
	}
}

func noNote(t *testing.T) {
	t.Helper()
	if _, err := os.Lstat(note); err == nil {
		t.Error("the note is still there")
	}
}

// TestRecoverNotAllowed: settings that root's process has left are nothing that others need.
func TestRecoverNotAllowed(t *testing.T) {
	files(t, "1", "0")
	write(t, note, settings[0].path+" 0\n")
	if err := errors.Join(os.Chmod(note, 0), os.Chmod(filepath.Dir(note), 0o755)); err != nil {
		t.Fatal(err)
	}
	// Root may open every file. With this the thread has the rights of another user there.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := unix.SetfsuidRetUid(65534); err != nil {
		t.Fatal(err)
	}
	err := Recover()
	if _, back := unix.SetfsuidRetUid(os.Geteuid()); back != nil {
		t.Fatal(back)
	}
	if err != nil {
		t.Errorf("got %v", err)
	}
}

// TestHasten: the settings are changed until the last user has put them back.
func TestHasten(t *testing.T) {
	for _, before := range [][]string{{"0", "1"}, {"1", "1"}, {"0", "0"}, {"0", ""}} {
		files(t, before...)
		first, err := Hasten()
		if err != nil {
			t.Fatal(err)
		}
		second, err := Hasten()
		if err != nil {
			t.Fatal(err)
		}
		during := []string{"1", "0"}
		if before[1] == "" {
			during[1] = "" // the kernel does not have it
		}
		check(t, "with two users", during...)
		for _, restore := range []func() error{first, first} {
			if err := restore(); err != nil {
				t.Error(err)
			}
		}
		check(t, "with one user", during...)
		if err := second(); err != nil {
			t.Error(err)
		}
		check(t, "afterwards", before...)
		noNote(t)
	}
}

// TestKilled: what a process left changed is put back, and nothing else that the note says.
func TestKilled(t *testing.T) {
	files(t, "1", "0")
	other := filepath.Join(t.TempDir(), "other")
	write(t, other, "5")
	write(t, note, settings[0].path+" 0\n"+settings[1].path+" 1\n"+other+" 7\n"+settings[0].path+" rm -rf\n")
	if err := Recover(); err != nil {
		t.Fatal(err)
	}
	check(t, "afterwards", "0", "1")
	noNote(t)
	if d, err := os.ReadFile(other); err != nil || string(d) != "5" {
		t.Errorf("another file has %q, %v", d, err)
	}
	if err := Recover(); err != nil {
		t.Error(err)
	}
}

// TestOther: another process is at work: its note says what to put back, and it will.
func TestOther(t *testing.T) {
	files(t, "0", "1")
	f, err := os.OpenFile(note, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	restore, err := Hasten()
	if err != nil {
		t.Fatal(err)
	}
	check(t, "while another process has the lock", "0", "1")
	if err := restore(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(note); err != nil {
		t.Error("the other process's note is gone")
	}
}

// TestLink: a note that is a link is not followed.
func TestLink(t *testing.T) {
	files(t, "0", "1")
	target := filepath.Join(t.TempDir(), "target")
	write(t, target, "x")
	if err := os.Symlink(target, note); err != nil {
		t.Fatal(err)
	}
	if _, err := Hasten(); err == nil {
		t.Error("no error")
	}
	check(t, "with a link", "0", "1")
}
