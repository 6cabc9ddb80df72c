package procfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Find returns the path of a program or library by its name: of the file that a process has mapped, if pid is not 0, or else in PATH and
// where the loader finds libraries. A path, and the name of a regular file in the working directory, are returned as they are, and so is a
// name that nothing has. The process must see the same files as this one.
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
	cache, err := os.ReadFile("/etc/ld.so.cache")
	if err != nil {
		return name, nil
	}
	for _, path := range libraries(cache, name) {
		if own(path) {
			return filepath.EvalSymlinks(path)
		}
	}
	return name, nil
}

// programDirs are where programs are, if nobody says it (PATH of a shell).
var programDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

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
	for _, dir := range programDirs {
		if at, inErr := inRoot(root, dir+"/"+name); inErr == nil {
			if st, statErr := os.Stat(at); statErr == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
				return dir + "/" + name, nil
			}
		}
	}
	cache, cacheErr := inRoot(root, "/etc/ld.so.cache")
	if cacheErr != nil {
		return "", err
	}
	table, cacheErr := os.ReadFile(cache)
	if cacheErr != nil {
		return "", err
	}
	for _, path := range libraries(table, name) {
		if at, inErr := inRoot(root, path); inErr == nil && own(at) {
			return path, nil
		}
	}
	return "", err
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

// libraries returns the paths that a table has for a name.
func libraries(cache []byte, name string) (paths []string) {
	at := bytes.Index(cache, []byte(cacheMagic)) // behind an older table, or alone
	if at < 0 || len(cache)-at < cacheHeader {
		return nil
	}
	cache = cache[at:]
	text := func(off uint32) string {
		if uint64(off) >= uint64(len(cache)) {
			return ""
		}
		s, _, _ := bytes.Cut(cache[off:], []byte{0})
		return string(s)
	}
	n := int(binary.NativeEndian.Uint32(cache[len(cacheMagic):]))
	for i := 0; i < n && cacheHeader+(i+1)*cacheEntry <= len(cache); i++ {
		e := cache[cacheHeader+i*cacheEntry:]
		if text(binary.NativeEndian.Uint32(e[4:])) == name {
			paths = append(paths, text(binary.NativeEndian.Uint32(e[8:])))
		}
	}
	return paths
}

// own reports whether a file is for this machine's programs, as this one is.
func own(path string) bool {
	machine := func(path string) elf.Machine {
		f, err := elf.Open(path)
		if err != nil {
			return elf.EM_NONE
		}
		defer f.Close()
		return f.Machine
	}
	m := machine(path)
	return m != elf.EM_NONE && m == machine("/proc/self/exe")
}
