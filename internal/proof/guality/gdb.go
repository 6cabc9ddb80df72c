package guality

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// script makes GDB print a line for each check that it reached: its number, the value that is expected, and the one that GDB
// prints, or null. Values are numbers, as the developers write any expression.
const script = `
import gdb, json
checks = json.loads(r'''%s''')
places = {}
for i, c in enumerate(checks):
    places.setdefault((c["File"], c["Line"]), []).append(i)
points = {}
for p in places:
    try:
        b = gdb.Breakpoint("%%s:%%d" %% p, internal=True)
        b.silent = True
        points[b.number] = (p, b)
    except gdb.error:
        pass
hit = []
gdb.events.stop.connect(lambda e: hit.extend(b.number for b in getattr(e, "breakpoints", [])))
def number(text):
    try:
        v = gdb.parse_and_eval(text)
        if v.is_optimized_out:
            return None
        if v.type.strip_typedefs().code == gdb.TYPE_CODE_FLT:
            return repr(float(v))
        return str(int(v) & 0xffffffffffffffff)
    except Exception:
        return None
gdb.execute("set confirm off")
gdb.execute("run >/dev/null", to_string=True)
while gdb.selected_inferior().pid and hit:
    for n in hit:
        p, b = points.pop(n, (None, None))
        if p is None:
            continue
        for i in places[p]:
            print("CHECK " + json.dumps([i, number(checks[i]["Value"]), number(checks[i]["Var"])]))
        b.enabled = False
    hit.clear()
    gdb.execute("continue", to_string=True)
`

// debugged is what GDB says of a check.
type debugged struct{ want, got string }

// debug asks GDB about a program.
func debug(ctx context.Context, path string, checks []Check) (map[int]debugged, error) {
	list, err := json.Marshal(checks)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "python "+fmt.Sprintf(script, list), path)
	cmd.Dir = filepath.Dir(path)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) { // GDB 13 aborts at the end of some programs
		return nil, fmt.Errorf("gdb: %w", err)
	}
	found := make(map[int]debugged)
	for line := range bytes.Lines(out) {
		own, is := bytes.CutPrefix(line, []byte("CHECK "))
		if !is {
			continue
		}
		var x []any
		if err := json.Unmarshal(own, &x); err != nil || len(x) != 3 {
			return nil, fmt.Errorf("gdb printed %q", line)
		}
		text := func(v any) string { s, _ := v.(string); return s }
		n, _ := x[0].(float64)
		found[int(n)] = debugged{text(x[1]), text(x[2])}
	}
	return found, nil
}
