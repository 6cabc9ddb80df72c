package testenv

import (
	"os"
	"os/exec"
)

// Build compiles packages of this module to a file or into a directory, for the machine that env names (GOARCH=arm64), or this one:
// args are what "go build" takes.
// The tool's profile is left out: with it, all that the tool imports would be compiled once more for the tests, for each machine.
func Build(t TB, out string, env []string, args ...string) {
	t.Helper()
	c := exec.Command("go", append([]string{"build", "-pgo=off", "-o", out}, args...)...)
	c.Env = append(os.Environ(), env...)
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", c, err, text)
	}
}
