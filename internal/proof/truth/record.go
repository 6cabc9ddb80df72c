package truth

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// expectedRun is a run of a traced function, with what it was given.
type expectedRun struct {
	label  string
	values []expected
}

// record is what a program says of its calls.
type record map[uint64][]expectedRun

// readRecord reads a program's output: a line for each run, with the number of its call, the
// function's label and the values: "12 add a=x5 name=s6f6e65 s=b0100".
func readRecord(r io.Reader) (record, error) {
	all := make(record)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("a record without a label: %q", lines.Text())
		}
		call, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		run := expectedRun{label: fields[1]}
		for _, f := range fields[2:] {
			v, err := readExpected(f)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			run.values = append(run.values, v)
		}
		all[call] = append(all[call], run)
	}
	return all, lines.Err()
}
