package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/hits"
	"github.com/bpfprologue/bpfprologue/internal/mapped"
	"github.com/bpfprologue/bpfprologue/internal/procfile"
	"github.com/bpfprologue/bpfprologue/tracer"
)

// onlooker knows what may explain why there was no hit.
type onlooker struct {
	parts   parts
	watcher *mapped.Watcher // nil if what processes map is not known
	command string
	who     *target
	began   time.Time
}

// lookOn begins before a command does, if there is one.
func lookOn(all parts, words []string, who *target) *onlooker {
	o := &onlooker{parts: all, who: who, began: time.Now()}
	if len(words) > 0 {
		o.command = words[0]
	}
	if slices.ContainsFunc(all, func(p *part) bool { return !p.x.kernel }) {
		if w, err := mapped.Watch(); err == nil {
			o.watcher = w
		}
	}
	return o
}

func (o *onlooker) close() error {
	if o.watcher == nil {
		return nil
	}
	return o.watcher.Close()
}

// nothing says why there was no hit. ended is whether the command has ended.
func (o *onlooker) nothing(s *settings, not *tracer.Unreported, ended bool) {
	n := hits.Nothing{Not: not, Unmapped: true, After: time.Since(o.began)}
	for _, p := range o.parts {
		if p.x.kernel {
			n.File = ""
			break // where somebody is all the time
		}
		n.File = p.x.path
	}
	for _, p := range o.parts {
		n.Unmapped = n.Unmapped && !p.x.kernel && o.unmapped(p.x.path)
	}
	if ended {
		n.Command = o.command
	}
	hits.PrintNothing(s.reports(), &n)
}

// unmapped reports whether it is known that no process which is traced has a file mapped, or had it meanwhile.
func (o *onlooker) unmapped(path string) bool {
	var st unix.Stat_t
	if o.watcher == nil || unix.Stat(path, &st) != nil {
		return false
	}
	if is, known := o.watcher.Inode(st.Ino); is || !known {
		return false
	}
	var all []string
	switch {
	case o.who.pid != 0:
		for _, pid := range o.who.pids {
			all = append(all, strconv.Itoa(pid))
		}
	case o.command != "" && !o.who.all: // they have all begun meanwhile
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
