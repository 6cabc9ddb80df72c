package whose

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/mapped"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// Onlooker knows what may explain why there was no hit.
type Onlooker struct {
	files   []string        // of images, where that is not a kernel's
	kernel  bool            // an image is a kernel's
	watcher *mapped.Watcher // nil if what processes map is not known
	command string
	who     *Target
	began   time.Time
}

// LookOn begins before a command does, if there is one. The files are those of images: "" is a kernel's.
func (h *Target) LookOn(files, words []string) *Onlooker {
	o := &Onlooker{who: h, began: time.Now()}
	if len(words) > 0 {
		o.command = words[0]
	}
	for _, f := range files {
		if f == "" {
			o.kernel = true // where somebody is all the time
			continue
		}
		o.files = append(o.files, f)
	}
	if len(o.files) > 0 {
		if w, err := mapped.Watch(); err == nil {
			o.watcher = w
		}
	}
	return o
}

// Close ends it.
func (o *Onlooker) Close() error {
	if o.watcher == nil {
		return nil
	}
	return o.watcher.Close()
}

// Nothing prints why there was no hit. ended is whether the command has ended.
func (o *Onlooker) Nothing(w io.Writer, not *tracer.Unreported, ended bool) {
	n := hits.Nothing{Not: not, Unmapped: !o.kernel, After: time.Since(o.began)}
	for _, f := range o.files {
		n.Unmapped = n.Unmapped && o.unmapped(f)
		if !o.kernel {
			n.File = f
		}
	}
	if ended {
		n.Command = o.command
	}
	hits.PrintNothing(w, &n)
}

// unmapped reports whether it is known that no process which is traced has a file mapped, or had it meanwhile.
func (o *Onlooker) unmapped(path string) bool {
	var st unix.Stat_t
	if o.watcher == nil || unix.Stat(path, &st) != nil {
		return false
	}
	if is, known := o.watcher.Inode(st.Ino); is || !known {
		return false
	}
	var all []string
	switch {
	case o.who.PID() != 0:
		for _, pid := range o.who.PIDs {
			all = append(all, strconv.Itoa(pid))
		}
	case o.command != "" && !o.who.All: // they have all begun meanwhile
	default:
		var err error
		if all, err = filepath.Glob("/proc/[0-9]*"); err != nil {
			return false
		}
	}
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue // which reads the file
		}
		if _, is, err := procfile.Mapped(pid, path); is || err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return false
		}
	}
	return true
}
