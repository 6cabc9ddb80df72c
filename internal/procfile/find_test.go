package procfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("here", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("sh", 0o700); err != nil { // it does not hide the program
		t.Fatal(err)
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pid        int
		name, want string
	}{
		{0, "", ""}, {0, "./sh", "./sh"}, {0, "/bin/none", "/bin/none"}, {0, "here", "here"}, {0, "no-such-program", "no-such-program"},
		{0, "sh", strings.TrimPrefix(shell, "/usr")}, {os.Getpid(), filepath.Base(own), own},
	} {
		got, err := Find(tt.pid, tt.name)
		if err != nil || got != tt.want && strings.TrimPrefix(got, "/usr") != tt.want {
			t.Errorf("%d, %q: %q, %v; want %q", tt.pid, tt.name, got, err, tt.want)
		}
	}
	if got, err := Find(os.Getpid(), "sh"); err == nil || !strings.Contains(err.Error(), "has mapped no file sh") {
		t.Errorf("a file that is not mapped: %q, %v", got, err)
	}
	if _, err := os.Stat("/etc/ld.so.cache"); err != nil {
		t.Skip("the loader has no table of libraries here")
	}
	got, err := Find(0, "libc.so.6")
	if err != nil || !filepath.IsAbs(got) {
		t.Errorf("libc.so.6: %q, %v", got, err)
	}
}

// FuzzLibraries: whatever a table has, what it names is in it.
func FuzzLibraries(f *testing.F) {
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		f.Add(cache[:min(len(cache), 4096)], "libc.so.6")
	}
	f.Add([]byte(cacheMagic), "x")
	f.Fuzz(func(t *testing.T, cache []byte, name string) {
		for _, p := range libraries(cache, name) {
			if !strings.Contains(string(cache), p) {
				t.Errorf("%q is not in the table", p)
			}
		}
	})
}
