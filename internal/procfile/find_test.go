package procfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
		{0, "", ""}, {0, "./sh", "./sh"}, {0, "/bin/none", "/bin/none"}, {0, "here", "here"},
		{0, "sh", strings.TrimPrefix(shell, "/usr")}, {os.Getpid(), filepath.Base(own), own},
	} {
		got, err := Find(tt.pid, tt.name)
		if err != nil || got != tt.want && strings.TrimPrefix(got, "/usr") != tt.want {
			t.Errorf("%d, %q: %q, %v; want %q", tt.pid, tt.name, got, err, tt.want)
		}
	}
	if got, err := Find(0, "no-such-program"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "in PATH") {
		t.Errorf("a program that is nowhere: %q, %v", got, err)
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

// TestFindThere: what a container has where the loader looks makes nobody wait and fills no memory.
func TestFindThere(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, dir := range []string{"etc", "lib"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(root+"/lib/pipe", 0o600), os.WriteFile(root+"/lib/text", []byte("no program at all, but long"), 0o600),
		os.WriteFile(root+"/lib/libx.so.1", program[:64], 0o600)); err != nil {
		t.Fatal(err)
	}
	table := []byte(cacheMagic)
	table = binary.NativeEndian.AppendUint32(table, 4)
	table = append(table, make([]byte, cacheHeader-len(table))...)
	texts := []byte("libx.so\x00")
	for _, path := range []string{"/lib/pipe", "/lib", "/lib/text", "/lib/libx.so.1"} {
		entry := make([]byte, cacheEntry)
		binary.NativeEndian.PutUint32(entry[4:], cacheHeader+4*cacheEntry)
		binary.NativeEndian.PutUint32(entry[8:], uint32(cacheHeader+4*cacheEntry+len(texts)))
		table, texts = append(table, entry...), append(texts, path+"\x00"...)
	}
	table = append(table, texts...)
	cache := root + "/etc/ld.so.cache"
	for _, tt := range []struct {
		what, want, err string
		make            func() error
	}{
		{"none", "", "name the path that the file has there", func() error { return nil }},
		{"a pipe", "", "ld.so.cache: it is no regular file", func() error { return unix.Mkfifo(cache, 0o600) }},
		{"a huge one", "", "ld.so.cache: it is larger than 4 MiB", func() error {
			return errors.Join(os.WriteFile(cache, table, 0o600), os.Truncate(cache, 1<<40))
		}},
		{"a table", "/lib/libx.so.1", "", func() error { return os.WriteFile(cache, table, 0o600) }},
	} {
		if err := tt.make(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		got := ""
		go func() {
			var err error
			got, err = findThere(root, os.Getpid(), "libx.so")
			done <- err
		}()
		select {
		case err := <-done:
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.HasSuffix(err.Error(), tt.err) {
				t.Errorf("%s: %q, %v", tt.what, got, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits", tt.what)
		}
		_ = os.Remove(cache)
	}
}

// TestPathOf: a process has a PATH of its own, of which only whole paths count.
func TestPathOf(t *testing.T) {
	for _, tt := range []struct {
		environment []string
		want        []string
	}{
		{[]string{"A=b", "PATH=/opt/here:there::/opt/../usr/bin"}, []string{"/opt/here", "/usr/bin"}},
		{[]string{"A=b"}, strings.Split(programDirs, ":")},
	} {
		// Start returns before the kernel has the new program's environment.
		cmd := exec.Command("/bin/sh", "-c", "echo begun; read line")
		cmd.Env = tt.environment
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if got := pathOf(cmd.Process.Pid); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.environment, got, tt.want)
		}
		_ = in.Close()
		_ = cmd.Wait() // it found no line
	}
}

// FuzzLibraries: whatever a table has, what it names is in it.
func FuzzLibraries(f *testing.F) {
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		f.Add(cache[:min(len(cache), 4096)], "libc.so.6")
	}
	f.Add([]byte(cacheMagic), "x")
	f.Fuzz(func(t *testing.T, cache []byte, name string) {
		for p := range libraries(cache, name) {
			if !strings.Contains(string(cache), p) {
				t.Errorf("%q is not in the table", p)
			}
		}
	})
}
