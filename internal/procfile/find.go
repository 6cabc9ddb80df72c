package procfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Find returns the path of a program or library by its name: of the file that a process has mapped, if pid is not 0, or else in PATH and
// where the loader finds libraries. A path, and the name of a regular file in the working directory, are returned as they are. The process must
// see the same files as this one.
func Find(pid int, name string) (string, error) {
	if name == "" || strings.Contains(name, "/") {
		return name, nil
	}
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
		return name, nil
	}
	if pid != 0 {
		return mapped(pid, name)
	}
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	if cache, err := readTable("/etc/ld.so.cache"); err == nil {
		for path := range libraries(cache, name) {
			if own(path) {
				return filepath.EvalSymlinks(path)
			}
		}
	}
	return "", fmt.Errorf("%s: %w here, in PATH, or where the loader finds libraries", name, fs.ErrNotExist)
}

// programDirs are where programs are, if nobody says it (PATH of a shell).
const programDirs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// maxEnvironment is how many bytes are read of what a process was begun with.
const maxEnvironment = 64 << 10

// pathOf returns the directories of a process's PATH.
func pathOf(pid int) (dirs []string) {
	list := programDirs
	if f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ"); err == nil {
		defer f.Close()
		text, _ := io.ReadAll(io.LimitReader(f, maxEnvironment)) // what can be read is enough
		for variable := range strings.SplitSeq(string(text), "\x00") {
			if path, is := strings.CutPrefix(variable, "PATH="); is {
				list = path
			}
		}
	}
	for dir := range strings.SplitSeq(list, ":") {
		if filepath.IsAbs(dir) { // others are below a working directory that may be another one now
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

// findThere returns the path that a program or library has to a process with another root, by its name: one that the process has mapped, or else
// where the shell and the loader look there.
func findThere(root string, pid int, name string) (string, error) {
	path, err := mapped(pid, name)
	if err == nil {
		// In this process's mount namespace the path is one from this process's root.
		if top, linkErr := os.Readlink(root); linkErr == nil && top != "/" {
			if below, is := strings.CutPrefix(path, top+"/"); is {
				path = "/" + below
			}
		}
		return path, nil
	}
	for _, dir := range pathOf(pid) {
		if at, inErr := inRoot(root, dir+"/"+name); inErr == nil {
			if st, statErr := os.Stat(at); statErr == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
				return dir + "/" + name, nil
			}
		}
	}
	cache, cacheErr := inRoot(root, "/etc/ld.so.cache")
	if cacheErr != nil {
		return "", nowhere(err)
	}
	table, cacheErr := readTable(cache)
	if cacheErr != nil {
		return "", fmt.Errorf("%w, and where its loader looks is not known: %w", err, cacheErr)
	}
	for path := range libraries(table, name) {
		if at, inErr := inRoot(root, path); inErr == nil && own(at) {
			return path, nil
		}
	}
	return "", nowhere(err)
}

// nowhere is the error for a name that a process has not mapped, which err says, and that is not elsewhere either.
func nowhere(err error) error {
	return fmt.Errorf("%w, and its PATH and its loader's directories have none: name the path that the file has there", err)
}

// mapped returns the path of a file of a name that a process has mapped.
func mapped(pid int, name string) (string, error) {
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return "", fmt.Errorf("there is no process %d", pid)
	}
	for line := range strings.Lines(string(maps)) {
		if at := strings.IndexByte(line, '/'); at >= 0 {
			if path := strings.TrimSuffix(strings.TrimSuffix(line[at:], "\n"), " (deleted)"); filepath.Base(path) == name {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("process %d has mapped no file %s", pid, name)
}

// The table of the loader's libraries (glibc, sysdeps/generic/dl-cache.h): a header, entries, and texts, whose offsets count from the header.
const (
	cacheMagic  = "glibc-ld.so.cache1.1"
	cacheHeader = 48
	cacheEntry  = 24 // flags, name, path, version, capabilities of the processor
)

// A table that is larger is none: those of distributions with all their libraries have a tenth of it.
const maxTable = 4 << 20

// readTable reads the table of the loader's libraries.
func readTable(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	table, err := io.ReadAll(io.LimitReader(f, maxTable+1))
	if err == nil && len(table) > maxTable {
		err = fmt.Errorf("%s: it is larger than %d MiB", path, maxTable>>20)
	}
	return table, err
}

// openRegular opens a regular file. Who owns a container decides what its files are: opening a pipe would wait for somebody who writes
// to it, and opening a device can do anything.
func openRegular(path string) (*os.File, error) {
	at, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	st, err := at.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no regular file", path)
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(int(at.Fd()))) // that one, whatever has the path now
}

// libraries are the paths that a table has for a name.
func libraries(cache []byte, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		at := bytes.Index(cache, []byte(cacheMagic)) // behind an older table, or alone
		if at < 0 || len(cache)-at < cacheHeader {
			return
		}
		cache := cache[at:]
		// No text is longer than a path can be: offsets may all lead to a long one.
		text := func(off uint32) []byte {
			if uint64(off) >= uint64(len(cache)) {
				return nil
			}
			s, _, _ := bytes.Cut(cache[off:min(len(cache), int(off)+unix.PathMax)], []byte{0})
			return s
		}
		n := int(binary.NativeEndian.Uint32(cache[len(cacheMagic):]))
		for i := 0; i < n && cacheHeader+(i+1)*cacheEntry <= len(cache); i++ {
			e := cache[cacheHeader+i*cacheEntry:]
			if string(text(binary.NativeEndian.Uint32(e[4:]))) == name && !yield(string(text(binary.NativeEndian.Uint32(e[8:])))) {
				return
			}
		}
	}
}

// own reports whether a file is for this machine's programs, as this one is: by the class and byte order, and the machine (elf(5)).
func own(path string) bool {
	header := func(path string) (h [20]byte, err error) {
		f, err := openRegular(path)
		if err != nil {
			return h, err
		}
		defer f.Close()
		_, err = io.ReadFull(f, h[:])
		return h, err
	}
	its, err := header(path)
	if err != nil || string(its[:4]) != elf.ELFMAG {
		return false
	}
	this, err := header("/proc/self/exe")
	return err == nil && [2]byte(its[4:]) == [2]byte(this[4:]) && [2]byte(its[18:]) == [2]byte(this[18:])
}
