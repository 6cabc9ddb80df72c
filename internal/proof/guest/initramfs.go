package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Names in the initramfs.
const (
	TaskPath  = "/task"
	ImagePath = "/kernel.elf"
)

// initPackage is the guest's only program.
const initPackage = "github.com/bpfprologue/bpfprologue/internal/proof/guest/init"

// file is one file of an initramfs: its data, or the path of a file outside with the data.
type file struct {
	name string
	mode uint32 // with the file's type, as stat has it
	data []byte
	from string
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
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", program, initPackage)
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
	files := []file{
		{name: "init", mode: executable, data: init},
		{name: TaskPath[1:], mode: regular, data: encoded.Bytes()},
		{name: ImagePath[1:], mode: regular, data: image},
	}
	for _, name := range slices.Sorted(maps.Keys(task.Files)) {
		files = append(files, file{name: strings.TrimPrefix(name, "/"), mode: executable, from: task.Files[name]})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// It is not compressed: an emulated processor unpacks slowly.
	w := bufio.NewWriterSize(f, 1<<20)
	if err := writeCPIO(w, withFolders(files)); err != nil {
		return err
	}
	return errors.Join(w.Flush(), f.Close())
}

// withFolders puts the folders of the files, and those that init mounts file systems on,
// before the files.
func withFolders(files []file) (out []file) {
	names := map[string]bool{"dev": true, "proc": true, "sys": true, "tmp": true}
	for _, f := range files {
		for dir := filepath.Dir(f.name); dir != "."; dir = filepath.Dir(dir) {
			names[dir] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) { // a folder comes before what is in it
		out = append(out, file{name: name, mode: directory})
	}
	return append(out, files...)
}

// writeCPIO writes an archive in the format of the kernel's Documentation/driver-api/
// early-userspace/buffer-format.rst ("newc"): a header of 13 numbers of 8 digits, the name
// and the data, each padded to 4 bytes.
func writeCPIO(w io.Writer, files []file) error {
	for i, f := range append(files, file{name: "TRAILER!!!"}) {
		if f.from != "" {
			var err error
			if f.data, err = os.ReadFile(f.from); err != nil {
				return err
			}
		}
		var b bytes.Buffer
		b.WriteString("070701")
		for _, n := range []any{i + 1, f.mode, 0, 0, 1, 0, len(f.data), 0, 0, 0, 0, len(f.name) + 1, 0} {
			fmt.Fprintf(&b, "%08x", n)
		}
		b.WriteString(f.name)
		// The header has 110 bytes, and the name ends with a NUL.
		b.Write(make([]byte, 1+-(110+len(f.name)+1)&3))
		for _, part := range [][]byte{b.Bytes(), f.data, make([]byte, -len(f.data)&3)} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
	}
	return nil
}
