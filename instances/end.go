package instances

import (
	"errors"
	"os"
)

// end ends links: the kernel waits for each, until nothing runs there any more.
func (w *attacher) end(links []*bound) error {
	if w.o.End == nil || w.r.pmu != "kprobe" {
		restore := w.hasten(len(links))
		return errors.Join(closeAll(len(links), func(i int) error { return links[i].Close() }), restore())
	}
	var slow []*os.File
	var fast []*bound
	for _, l := range links {
		if p, ok := l.Closer.(*probeLink); ok {
			slow = append(slow, os.NewFile(uintptr(p.fd), "probe"))
		} else {
			fast = append(fast, l)
		}
	}
	err := closeAll(len(fast), func(i int) error { return fast[i].Close() })
	if len(slow) > 0 {
		err = errors.Join(err, w.o.End(slow))
	}
	return err
}

// EndProbes closes the files that AttachOptions.End gets, and so ends their probes. It returns when
// all are gone. progress, if not nil, is called as each ends, from several goroutines.
//
// It changes settings of the kernel meanwhile: see AttachOptions.KeepSettings.
func EndProbes(files []*os.File, progress func()) error {
	restore := hasten(len(files))
	err := closeAll(len(files), func(i int) error {
		err := files[i].Close()
		if progress != nil {
			progress()
		}
		return err
	})
	return errors.Join(err, restore())
}

// closeAll calls f for all, some of them side by side, whatever it returns.
func closeAll(n int, f func(i int) error) error {
	errs := make([]error, n)
	_ = manyTimes(n, func(i int) error {
		errs[i] = f(i)
		return nil
	})
	return errors.Join(errs...)
}
