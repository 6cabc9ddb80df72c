// Package release_test makes a release as users get it, twice, and installs it in the ways that the README names.
package release_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

const (
	root    = "../../.."
	version = "v0.99.0" // which will have no tag
)

// run returns what a command prints, on both outputs.
func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c, err, out)
	}
	return string(out)
}

func command(env []string, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = root
	c.Env = append(os.Environ(), env...)
	return c
}

// released makes a release, and returns the directory with its files.
func released(t *testing.T, env []string, arches ...string) string {
	t.Helper()
	testenv.Tool(t, "git")
	dir := filepath.Join(t.TempDir(), "release")
	t.Log(run(t, command(env, "scripts/release", append([]string{version, dir}, arches...)...)))
	return dir
}

// one returns the only file that a pattern matches.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	return found[0]
}

// files returns the digest of each file below a directory, and the mode of all else.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !d.Type().IsRegular() {
			out[name] = d.Type().String()
			return err
		}
		data, err := os.ReadFile(path)
		out[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReproducible: the same commit gives the same bytes, though the second build is another user's, elsewhere on earth and on the disk.
// RELEASE_FULL=1: for all architectures, and not only this machine's, and the second build takes nothing from the first.
func TestReproducible(t *testing.T) {
	arches := []string{runtime.GOARCH}
	if os.Getenv("RELEASE_FULL") != "" {
		arches = nil
	}
	first := released(t, nil, arches...)
	another := []string{"TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "USER=somebody", "GOFLAGS=-buildvcs=false", "GOAMD64=v3"}
	if arches == nil {
		another = append(another, "RELEASE_GOCACHE="+t.TempDir())
	}
	second := released(t, another, arches...)
	a, b := files(t, first), files(t, second)
	if len(a) != len(b) {
		t.Errorf("%d files, and the second time %d", len(a), len(b))
	}
	for name, digest := range a {
		if b[name] != digest {
			t.Errorf("%s differs", name)
		}
	}
	if len(a) < 7 { // notes, checksums, the directory, and four files of an architecture
		t.Errorf("%d files", len(a))
	}
	check := exec.Command("sha256sum", "-c", "--quiet", "SHA256SUMS")
	check.Dir = first
	run(t, check)
	t.Run("deb", func(t *testing.T) { testDeb(t, one(t, first, "*_"+runtime.GOARCH+".deb")) })
	t.Run("rpm", func(t *testing.T) {
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		testRPM(t, one(t, first, "*."+machine+".rpm"))
	})
	t.Run("contents", func(t *testing.T) {
		// Nothing of this machine is in what is published.
		here, err := filepath.Abs(root)
		if err != nil {
			t.Fatal(err)
		}
		archive := one(t, first, "*_"+runtime.GOARCH+".tar.gz")
		dir := t.TempDir()
		run(t, exec.Command("tar", "-xzf", archive, "-C", dir, "--strip-components=1"))
		program, err := os.ReadFile(filepath.Join(dir, "prolog-dump"))
		if err != nil {
			t.Fatal(err)
		}
		sbom, err := os.ReadFile(filepath.Join(dir, "sbom.cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range append(strings.Fields(run(t, command(nil, "go", "env", "GOMODCACHE", "GOCACHE", "GOROOT"))), here, os.TempDir()+"/tmp.") {
			if bytes.Contains(program, []byte(text)) || bytes.Contains(sbom, []byte(text)) {
				t.Errorf("%q is in the release", text)
			}
		}
		for _, part := range []string{"github.com/cilium/ebpf", "github.com/spf13/cobra", `"version": "` + version + `"`} {
			if !bytes.Contains(sbom, []byte(part)) {
				t.Errorf("%s is not in the list of parts", part)
			}
		}
		if bytes.Contains(sbom, []byte("go-cmp")) {
			t.Error("what only tests use is in the list of parts")
		}
	})
}

// testDeb installs the package in a new Debian that has only what every Debian has, and removes it.
func testDeb(t *testing.T, deb string) {
	testenv.Tool(t, "mmdebstrap")
	if os.Geteuid() != 0 {
		testenv.Missing(t, "only root installs packages")
	}
	dir := filepath.Join(t.TempDir(), "root")
	run(t, exec.Command("mmdebstrap", "--quiet", "--mode=root", "--variant=essential", "bookworm", dir))
	before := files(t, dir)
	data, err := os.ReadFile(deb)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.deb"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command("chroot", append([]string{dir, name}, args...)...)
		c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
		return run(t, c)
	}
	in("dpkg", "--install", "/package.deb")
	tryTool(t, in)
	for _, path := range []string{"/usr/share/man/man1/prolog-dump-trace.1.gz", "/usr/share/man/man7/prolog-dump-definitions.7.gz", "/usr/share/bash-completion/completions/prolog-dump", "/usr/share/doc/prolog-dump/copyright"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Error(err)
		}
	}
	if text := in("bash", "-c", ". /usr/share/bash-completion/completions/prolog-dump && complete -p prolog-dump"); !strings.Contains(text, "prolog-dump") {
		t.Errorf("bash completes nothing: %s", text)
	}
	in("dpkg", "--purge", "prolog-dump")
	if err := os.Remove(filepath.Join(dir, "package.deb")); err != nil {
		t.Fatal(err)
	}
	after := files(t, dir)
	for name, digest := range after {
		// What dpkg keeps of itself: its log, and its state before the last change.
		if name == "var/log/dpkg.log" || strings.HasPrefix(name, "var/lib/dpkg/") && strings.HasSuffix(name, "-old") || strings.HasPrefix(name, "var/lib/dpkg/lock") {
			continue
		}
		if before[name] != digest {
			t.Errorf("/%s is left, or changed", name)
		}
	}
	for name := range before {
		if _, is := after[name]; !is {
			t.Errorf("/%s is gone", name)
		}
	}
}

// testRPM installs the package where nothing else is: the tool needs no other file.
func testRPM(t *testing.T, pkg string) {
	testenv.Tool(t, "rpm")
	if os.Geteuid() != 0 {
		testenv.Missing(t, "only root installs packages")
	}
	dir := t.TempDir()
	rpm := func(args ...string) string {
		t.Helper()
		return run(t, exec.Command("rpm", append([]string{"--root", dir, "--nodeps"}, args...)...))
	}
	rpm("--install", pkg)
	tryTool(t, func(name string, args ...string) string {
		t.Helper()
		return run(t, exec.Command("chroot", append([]string{dir, "/usr/bin/" + name}, args...)...))
	})
	rpm("--erase", "prolog-dump")
	if left, err := filepath.Glob(filepath.Join(dir, "usr/*/*prolog*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "usr/share/*/*/*prolog*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// tryTool runs the tool that was installed, where in runs commands.
func tryTool(t *testing.T, in func(name string, args ...string) string) {
	t.Helper()
	if text := in("prolog-dump", "--version"); !strings.HasPrefix(text, "prolog-dump version "+version+", ") || strings.Contains(text, "with changes") {
		t.Errorf("the version is %s", text)
	}
	if text := in("prolog-dump", "demo"); !strings.Contains(text, "SEC(") || !strings.Contains(text, "arg1: fetched at 10 of 11 sites") {
		t.Errorf("demo prints\n%s", text)
	}
}

// TestInstall installs the newest version with the Go command, as the README says. The module comes from a directory that is laid out as a module
// proxy, and what it needs from this machine's cache of modules, whose checksums were compared when they got there: no network is asked.
func TestInstall(t *testing.T) {
	testenv.Tool(t, "git")
	proxy, bin := t.TempDir(), t.TempDir()
	run(t, command(nil, "scripts/module-proxy", version, proxy))
	cache := strings.TrimSpace(run(t, command(nil, "go", "env", "GOMODCACHE")))
	c := command([]string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), "GOSUMDB=off", "GOFLAGS=-modcacherw",
		"GOMODCACHE=" + t.TempDir(), "GOBIN=" + bin, "GOWORK=off", "GOTOOLCHAIN=local",
		"CGO_ENABLED=0", // as where there is no compiler of C; what the release needs is compiled so
	}, "go", "install", "-trimpath", "github.com/bpfprologue/bpfprologue/cmd/prolog-dump@latest")
	c.Dir = t.TempDir() // outside of any module
	t.Log(run(t, c))
	tryTool(t, func(name string, args ...string) string {
		t.Helper()
		return run(t, exec.Command(filepath.Join(bin, name), args...))
	})
}

// TestRefused: what is no version, what is another commit's, and a tag without a section in the list of changes.
func TestRefused(t *testing.T) {
	testenv.Tool(t, "git")
	dir := filepath.Join(t.TempDir(), "clone")
	run(t, command(nil, "git", "clone", "-q", "--no-tags", ".", dir))
	in := func(name string, args ...string) (string, error) {
		c := command([]string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}, name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"tag", version}, {"commit", "-q", "--allow-empty", "-m", "later"}, {"tag", "v0.98.0"}} {
		if out, err := in("git", args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	for name, want := range map[string]string{"1.0": "1.0 is no version", version: version + " is commit ", "v0.98.0": "CHANGELOG.md has no section v0.98.0"} {
		if out, err := in("scripts/release", name, t.TempDir()); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
