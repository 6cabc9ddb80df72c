// Package testenv opens test images, and finds what tests need outside the repository: large
// images and other tools. If something is missing, the test is skipped with the reason; with
// CI=true in the environment it fails, since a job that means to test must not pass without.
package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	fixtures "github.com/bpfprologue/bpfprologue/testdata/vmlinux-fixtures"
)

// TB is the part of testing.TB that this package uses.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Missing skips or fails a test because something is missing.
func Missing(t TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Fixture opens an image of testdata/vmlinux-fixtures.
func Fixture(t TB, name string) *dwarfloc.Image {
	t.Helper()
	data, err := fixtures.Bytes(name)
	if err != nil {
		t.Fatalf("%v", err)
	}
	img, err := dwarfloc.FromBytes(name, data, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return img
}

// CleanupTB is the part of testing.TB that helpers use that release something.
type CleanupTB interface {
	TB
	TempDir() string
	Cleanup(f func())
}

// Open opens an image. It is closed when the test ends.
func Open(t CleanupTB, path string) *dwarfloc.Image {
	t.Helper()
	img, err := dwarfloc.Open(path, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = img.Close() })
	return img
}

// Program writes an image of testdata/vmlinux-fixtures to an executable file, and opens it. The programs there are for amd64.
func Program(t CleanupTB, name string) (path string, img *dwarfloc.Image) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skipf("%s runs on amd64, and this is %s", name, runtime.GOARCH)
	}
	path, err := fixtures.WriteTo(t.TempDir(), name)
	if err == nil {
		err = os.Chmod(path, 0o700)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return path, Open(t, path)
}

// Vmlinux returns the path of a kernel image with debug information: BENCH_VMLINUX,
// or what scripts/fetch-vmlinux.sh fetched ("make vmlinux").
func Vmlinux(t TB) string {
	t.Helper()
	if path := os.Getenv("BENCH_VMLINUX"); path != "" {
		return path
	}
	found, err := filepath.Glob(filepath.Join(Cache(), "vmlinux-*-amd64"))
	if err == nil {
		for _, f := range found {
			if !strings.HasSuffix(f, "-cloud-amd64") || len(found) == 1 {
				return f
			}
		}
	}
	Missing(t, "no kernel image: run \"make vmlinux\", or set BENCH_VMLINUX")
	return ""
}

// VmlinuxOf returns the path of a kernel image for another architecture than amd64, which
// scripts/fetch-vmlinuz.sh fetched ("make vmlinux"), or "" when another image was chosen with
// BENCH_VMLINUX.
func VmlinuxOf(t TB, arch string) string {
	t.Helper()
	if os.Getenv("BENCH_VMLINUX") != "" {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(Cache(), arch, "vmlinux-*-"+arch))
	if err != nil || len(found) == 0 {
		Missing(t, "no %s kernel image: run \"make vmlinux\"", arch)
		return ""
	}
	return found[0]
}

// CloudVmlinux returns the path of the image of Debian's 6.1 cloud kernel for amd64, which has in it what the other one has in modules.
func CloudVmlinux(t TB) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(Cache(), "vmlinux-6.1*-cloud-amd64"))
	if err != nil || len(found) == 0 {
		Missing(t, "no image of Debian's 6.1 cloud kernel: run \"make vmlinux\"")
		return ""
	}
	return found[0]
}

// Cache is where scripts/fetch-vmlinux.sh puts what it fetches.
func Cache() string {
	if cache := os.Getenv("BENCH_CACHE"); cache != "" {
		return cache
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "bench", ".cache")
}

// Tool returns the path of a program.
func Tool(t TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s is not installed: run \"make deps\"", name)
	}
	return path
}
