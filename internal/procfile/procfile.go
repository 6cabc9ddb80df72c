// Package procfile finds the files of another process: by which path this one sees them, and whether that process has mapped them.
package procfile

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Path returns the path by which this process sees a file of another one, which may be in another mount
// namespace, in a container, or have another root. A name without a slash is looked for, as [Find] does.
func Path(pid int, path string) (string, error) {
	if pid == 0 || path == "" {
		return Find(0, path)
	}
	dir := "/proc/" + strconv.Itoa(pid)
	same, err := sameRoot(dir)
	if errors.Is(err, unix.ENOENT) {
		return "", fmt.Errorf("there is no process %d", pid)
	}
	// If it cannot be known, the path is as good as any. What /proc says of the process is no file of its own.
	if same || err != nil || strings.HasPrefix(path, dir+"/") {
		return Find(pid, path)
	}
	if !strings.Contains(path, "/") {
		there, err := findThere(dir+"/root", pid, path)
		if err != nil {
			return "", err
		}
		path = there
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s: process %d has file systems of its own: name the file by its whole path there", path, pid)
	}
	return inRoot(dir+"/root", path)
}

// Paths returns the paths of all distinct files that a path, or a name, is to some processes: those of several containers differ.
// Processes that have no such file do not count, if another one has it. Without processes it is what it is to this one.
func Paths(pids []int, path string) (out []string, err error) {
	if len(pids) == 0 {
		one, err := Path(0, path)
		return []string{one}, err
	}
	var errs []error
	var known []os.FileInfo
	for _, pid := range pids {
		one, err := Path(pid, path)
		var st os.FileInfo
		if err == nil {
			st, err = os.Stat(one)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !slices.ContainsFunc(known, func(k os.FileInfo) bool { return os.SameFile(k, st) }) {
			known, out = append(known, st), append(out, one)
		}
	}
	if len(out) == 0 {
		return nil, errs[0]
	}
	return out, nil
}

// Same reports whether two paths lead to one file.
func Same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// sameRoot reports whether a process, by its directory in /proc, sees the same files as this one.
func sameRoot(dir string) (bool, error) {
	for _, x := range [][2]string{{"/proc/self/ns/mnt", dir + "/ns/mnt"}, {"/", dir + "/root"}} {
		var own, its unix.Stat_t
		if err := errors.Join(unix.Stat(x[0], &own), unix.Stat(x[1], &its)); err != nil {
			return false, err
		}
		if own.Ino != its.Ino || own.Dev != its.Dev {
			return false, nil
		}
	}
	return true, nil
}

// inRoot returns the path below a root of what a path means to a process that has the root: links and ".." do not lead out of it.
func inRoot(root, path string) (string, error) {
	top, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	defer top.Close()
	fd, err := unix.Openat2(int(top.Fd()), path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return "", &os.PathError{Op: "open", Path: root + path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	// Both are said in the same way, in another mount namespace from its topmost root.
	name := nameOf(file)
	rest, below := strings.CutPrefix(name, strings.TrimSuffix(nameOf(top), "/")+"/")
	out := root + "/" + rest
	st, err := file.Stat()
	if now, wrong := os.Lstat(out); err != nil || wrong != nil || !below || !os.SameFile(st, now) {
		return "", fmt.Errorf("%s%s: the file is there by no path without links", root, path)
	}
	return out, nil
}

// nameOf returns the path of an open file, or "".
func nameOf(f *os.File) string {
	name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	return name
}

// Mapped reports whether a process maps a file, or else returns a path of one that it maps and that was there before.
func Mapped(pid int, path string) (old string, is bool, err error) {
	file, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return "", false, err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return "", false, err
	}
	name := nameOf(file)
	dir := "/proc/" + strconv.Itoa(pid)
	f, err := os.Open(dir + "/maps")
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	last := ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// An address range, permissions, offset, device, inode and path: proc_pid_maps(5).
		fields := strings.SplitN(lines.Text(), " ", 6)
		if len(fields) < 6 || fields[4] == "0" || fields[3]+fields[4] == last {
			continue
		}
		last = fields[3] + fields[4]
		from, to, _ := strings.Cut(fields[0], "-")
		at := dir + "/map_files/" + strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0") // not padded there
		var its unix.Stat_t
		if unix.Stat(at, &its) == nil {
			if its.Ino == st.Ino && its.Dev == st.Dev {
				return "", true, nil
			}
		} else if fields[4] == strconv.FormatUint(st.Ino, 10) {
			return "", true, nil // without privileges the device is not known: that of overlayfs is another one here
		}
		there, _ := strings.CutSuffix(strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n"), " (deleted)")
		if there == name && old == "" {
			old = at
		}
	}
	if exe, err := os.Stat(dir + "/exe"); err == nil && old != "" {
		if file, err := os.Stat(old); err == nil && os.SameFile(exe, file) {
			old = dir + "/exe"
		}
	}
	return old, false, lines.Err()
}
