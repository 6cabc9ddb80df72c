package mapped

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Of reads which mappings of instructions a process has now, by address: /proc/PID/maps (proc_pid_maps(5)).
func Of(pid int) (out []Mapping, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m, ok := parseMapping(lines.Text()); ok {
			out = append(out, m)
		}
	}
	return out, lines.Err()
}

// parseMapping parses a line of /proc/PID/maps. ok is false for one without instructions.
func parseMapping(line string) (m Mapping, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 5 || len(fields[1]) < 3 || fields[1][2] != 'x' {
		return m, false
	}
	start, end, _ := strings.Cut(fields[0], "-")
	var errs [4]error
	m.Start, errs[0] = strconv.ParseUint(start, 16, 64)
	m.End, errs[1] = strconv.ParseUint(end, 16, 64)
	m.Offset, errs[2] = strconv.ParseUint(fields[2], 16, 64)
	m.Inode, errs[3] = strconv.ParseUint(fields[4], 10, 64)
	if errors.Join(errs[:]...) != nil || m.End <= m.Start {
		return m, false
	}
	if len(fields) == 6 {
		// The kernel writes a newline in a name as \012.
		m.Path = strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n")
	}
	return m, true
}
