package guest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Names in the initramfs.
const (
	TaskPath  = "/task"
	ImagePath = "/kernel.elf"
)

// initPackage is the guest's only program.
const initPackage = "github.com/bpfprologue/bpfprologue/internal/guest/init"

// file is one file of an initramfs.
type file struct {
	name string
	mode uint32 // with the file's type, as stat has it
	data []byte
}

const (
	directory  = 0o040755
	executable = 0o100755
	regular    = 0o100644
)

// writeInitramfs builds init for the machine and writes the file that the kernel
// unpacks into its first file system.
func (k *Kernel) writeInitramfs(ctx context.Context, path string, task *Task) error {
	program := filepath.Join(filepath.Dir(path), "init")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, initPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+k.GOARCH, "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", initPackage, err, out)
	}
	init, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	image, err := symbolImage(k.Vmlinux)
	if err != nil {
		return err
	}
	var encoded bytes.Buffer
	if err := gob.NewEncoder(&encoded).Encode(task); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	err = writeCPIO(zip, []file{
		{"dev", directory, nil}, {"proc", directory, nil}, {"sys", directory, nil}, {"tmp", directory, nil},
		{"init", executable, init},
		{TaskPath[1:], regular, encoded.Bytes()},
		{ImagePath[1:], regular, image},
	})
	if err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return f.Close()
}

// writeCPIO writes an archive as the kernel's Documentation/driver-api/early-userspace/
// buffer-format.rst has it ("newc"): a head of 13 numbers of 8 digits, the name, the
// data, each filled up to 4 bytes.
func writeCPIO(w io.Writer, files []file) error {
	var b bytes.Buffer
	for i, f := range append(files, file{name: "TRAILER!!!"}) {
		b.WriteString("070701")
		for _, n := range []any{i + 1, f.mode, 0, 0, 1, 0, len(f.data), 0, 0, 0, 0, len(f.name) + 1, 0} {
			fmt.Fprintf(&b, "%08x", n)
		}
		b.WriteString(f.name)
		// The head has 110 bytes, and the name ends with a NUL.
		b.Write(make([]byte, 1+-(110+len(f.name)+1)&3))
		b.Write(f.data)
		b.Write(make([]byte, -len(f.data)&3))
	}
	_, err := w.Write(b.Bytes())
	return err
}
