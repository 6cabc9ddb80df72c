package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// writers are all verbs that write to what -o names, here OUT, and the same verbs with work that fails.
var writers = []struct {
	name string
	bpf  bool
	args string // words, with | between them
	fail string
}{
	{"show", false,
		"-x|PROGRAM|-o|OUT|mix key",
		"-x|PROGRAM|-o|OUT|none key"},
	{"json", false,
		"-x|PROGRAM|--format|json|-o|OUT|show|mix key",
		"-x|none|--format|json|-o|OUT|mix key"},
	{"tracefs", false,
		"-x|PROGRAM|--format|tracefs|-o|OUT|walk i",
		"-x|PROGRAM|--format|tracefs|-o|OUT|none i"},
	{"bpftrace", false,
		"-x|PROGRAM|--format|bpftrace|-o|OUT|walk i",
		"-x|PROGRAM|--format|bpftrace|-o|OUT|walk nope"},
	{"go", false,
		"-x|PROGRAM|--format|go|-o|OUT|walk i",
		"-x|PROGRAM|--format|go|-o|OUT|walk i:nope"},
	{"c", false,
		"-x|PROGRAM|--format|c|-o|OUT|walk i",
		"-x|PROGRAM|--format|cc|-o|OUT|walk i"},
	{"funcs", false,
		"funcs|-x|PROGRAM|-o|OUT|*",
		"funcs|-x|PROGRAM|-o|OUT|[z-a"},
	{"lines", false,
		"lines|-x|PROGRAM|-o|OUT|walk",
		"lines|-x|PROGRAM|-o|OUT|none"},
	{"vars", false,
		"vars|-x|PROGRAM|-o|OUT|walk",
		"vars|-x|PROGRAM|-o|OUT|none"},
	{"header", false,
		"header|-x|PROGRAM|-o|OUT|walk i",
		"header|-x|PROGRAM|-o|OUT|none i"},
	{"report", false,
		"report|-x|PROGRAM|-o|OUT|walk i",
		"report|-i|OUT|-o|OUT"},
	{"coverage", false,
		"coverage|-x|PROGRAM|-o|OUT",
		"coverage|-x|none|-o|OUT"},
	{"pack write", false,
		"pack|write|-x|PROGRAM|-o|OUT",
		"pack|write|-o|OUT|PROGRAM|none*"},
	{"pack archive", false,
		"pack|archive|-o|OUT|PACK",
		"pack|archive|-o|OUT|PACK|OUT"},
	{"verify", true,
		"verify|-x|PROGRAM|-o|OUT|walk i",
		"verify|-x|PROGRAM|-o|OUT|none i"},
	{"record", true,
		"record|-x|PROGRAM|-o|OUT|walk i|--|PROGRAM",
		"record|-x|PROGRAM|-o|OUT|walk i|--|./nonexist"},
	{"trace", true,
		"trace|-x|PROGRAM|-o|OUT|walk i|--|PROGRAM",
		"trace|-x|PROGRAM|-o|OUT|walk i|--|./nonexist"},
	{"trace json", true,
		"trace|-x|PROGRAM|--format|json|-o|OUT|walk i|--|PROGRAM",
		"trace|-x|PROGRAM|-o|OUT|none i"},
	{"perfetto", true,
		"trace|-x|PROGRAM|--format|perfetto|-o|OUT|walk i|--|PROGRAM",
		"trace|-x|PROGRAM|--format|perfetto|-o|OUT|walk i|--|./nonexist"},
	{"trace -i", false,
		"trace|-i|RECORDING|-o|OUT",
		"trace|-i|OUT|-o|OUT"},
	{"stat", true,
		"stat|-x|PROGRAM|-o|OUT|walk i|--|PROGRAM",
		"stat|-x|PROGRAM|-o|OUT|walk i|--|./nonexist"},
}

// TestOutputFile writes each kind of answer to each kind of file: regular files are replaced when the answer is whole, also through
// links, and are left alone when the work fails. What is no regular file stays what it is and is written to, and what cannot be written
// is an error.
func TestOutputFile(t *testing.T) {
	dir := t.TempDir()
	program, err := fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{"PROGRAM": program, "PACK": filepath.Join(dir, "some.pack"), "RECORDING": filepath.Join(dir, "some.hits")}
	tool := func(words, out string) (printed, said string, err error) {
		t.Helper()
		args := strings.Split(words, "|")
		for i, a := range args {
			if a == "OUT" {
				args[i] = out
			} else if p := places[a]; p != "" {
				args[i] = p
			}
		}
		c := toolCommand(t, nil, args...)
		var stdout, stderr bytes.Buffer
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader("root-node\n"), &stdout, &stderr
		err = c.Run()
		return stdout.String(), stderr.String(), err
	}
	if _, said, err := tool("pack|write|-x|PROGRAM|-o|OUT", places["PACK"]); err != nil {
		t.Fatal(err, said)
	}
	bpf := bpfexec.Available() == nil
	if bpf {
		if _, said, err := tool("record|-x|PROGRAM|-o|OUT|walk i|--|PROGRAM", places["RECORDING"]); err != nil {
			t.Fatal(err, said)
		}
	}
	const old = "what was there"
	for _, x := range writers {
		t.Run(x.name, func(t *testing.T) {
			if !bpf && (x.bpf || strings.Contains(x.args, "RECORDING")) {
				t.Skip("nothing can be traced")
			}
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			write := func(name string) string {
				if err := os.WriteFile(at(name), []byte(old), 0o640); err != nil {
					t.Fatal(err)
				}
				return at(name)
			}
			good := func(out string) (printed string) {
				t.Helper()
				printed, said, err := tool(x.args, out)
				if err != nil {
					t.Errorf("%s: %v\n%s", out, err, said)
				}
				return printed
			}
			is := func(name string, mode os.FileMode) {
				t.Helper()
				if st, err := os.Lstat(at(name)); err != nil || st.Mode().Type() != mode {
					t.Errorf("%s is now %v, %v", name, st.Mode(), err)
				}
			}
			has := func(name string) {
				t.Helper()
				if text, err := os.ReadFile(at(name)); err != nil || len(text) == 0 || strings.Contains(string(text), old) {
					t.Errorf("%s has %d bytes, %v", name, len(text), err)
				}
			}

			good(at("new"))
			has("new")
			good(write("regular"))
			has("regular")
			if st, err := os.Stat(at("regular")); err != nil || st.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", st.Mode(), err)
			}
			write("sub")
			for name, to := range map[string]string{"link": "sub", "chain": "link", "dangling": "later"} {
				if err := os.Symlink(to, at(name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"link", "chain", "dangling"} {
				good(at(name))
				is(name, os.ModeSymlink)
				has(name)
				is("sub", 0)
			}
			for _, name := range []string{"kept", "linked"} {
				write("kept")
				_ = os.Symlink("kept", at("linked"))
				_, said, err := tool(x.fail, at(name))
				if text, _ := os.ReadFile(at("kept")); err == nil || string(text) != old {
					t.Errorf("a failure leaves %.40q, %v\n%s", text, err, said)
				}
			}

			if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			read := make(chan []byte)
			go func() {
				text, _ := os.ReadFile(at("pipe"))
				read <- text
			}()
			good(at("pipe"))
			if text := <-read; len(text) == 0 {
				t.Error("nothing came through a pipe")
			}
			is("pipe", os.ModeNamedPipe)
			printed := good("/dev/stdout")
			if printed == "" {
				t.Error("nothing came to standard output")
			}
			if whole, err := os.ReadFile(at("new")); strings.HasPrefix(x.name, "pack") && (err != nil || printed != string(whole)) {
				t.Errorf("%d bytes came to standard output, and the file has %d; %v", len(printed), len(whole), err)
			}
			device := func(name string, minor uint32) bool {
				return unix.Mknod(at(name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))) == nil
			}
			if device("null", 3) && device("full", 7) { // that needs root
				_ = os.Symlink("null", at("to-null"))
				good(at("null"))
				good(at("to-null"))
				is("to-null", os.ModeSymlink)
				if _, said, err := tool(x.args, at("full")); err == nil || !strings.Contains(said, "no space left") {
					t.Errorf("a full device: %v\n%s", err, said)
				}
				_, _, _ = tool(x.fail, at("null"))
				is("null", os.ModeDevice|os.ModeCharDevice)
				is("full", os.ModeDevice|os.ModeCharDevice)
			}
			if left, _ := filepath.Glob(at(".*")); len(left) > 0 {
				t.Errorf("left over: %s", left)
			}
		})
	}
}

// TestOpenedOutput: what is appended to a file by a shell is not lost when /dev/stdout is named.
func TestOpenedOutput(t *testing.T) {
	dir := t.TempDir()
	program, err := fixtures.WriteTo(dir, "run-gcc12-O2-dwarf5.exe")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("before\n"); err != nil {
		t.Fatal(err)
	}
	c := toolCommand(t, nil, "funcs", "-x", program, "-o", "/dev/stdout", "walk")
	c.Stdout, c.Stderr = f, os.Stderr
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || !strings.HasPrefix(string(text), "before\n") || !strings.Contains(string(text), "walk") {
		t.Errorf("%q, %v", text, err)
	}
}
