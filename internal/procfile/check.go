package procfile

import (
	"errors"
	"fmt"
)

// Check returns notes about processes that do not map a file, unless another one of them does. If one still maps the file that was there
// before, that is an error unless force is set.
func Check(pids []int, path string, force bool) (notes []string, err error) {
	olds := make(map[int]string)
	for _, pid := range pids {
		old, is, err := Mapped(pid, path)
		if is {
			return nil, nil
		}
		if err == nil { // else it cannot be known
			olds[pid] = old
		}
	}
	for _, pid := range pids {
		old, known := olds[pid]
		switch {
		case !known:
		case old == "":
			notes = append(notes, fmt.Sprintf("%s: process %d does not map this file: there are no hits before it does", path, pid))
		case force:
			notes = append(notes, replaced(path, pid, old))
		default:
			return notes, errors.New(replaced(path, pid, old))
		}
	}
	return notes, nil
}

func replaced(path string, pid int, old string) string {
	return fmt.Sprintf("%s: process %d runs another file, which was there before: restart it, or name that file: -x %s", path, pid, old)
}
