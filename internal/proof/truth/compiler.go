package truth

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// compiler is how a compiler is run.
type compiler struct {
	path string
	args []string // before all others
	env  []string
}

// compiler returns how the build's compiler is run.
func (b *Build) compiler() compiler {
	switch {
	case b.Compiler == "rustc":
		// Debian's has no version in its name, and need not be the first of its name in PATH.
		return compiler{path: "/usr/bin/rustc"}
	case b.Language == Rust: // as scripts/fetch-rust.sh unpacks it
		root := filepath.Join(testenv.Cache(), b.Compiler, "usr")
		return compiler{
			path: filepath.Join(root, "bin/rustc"), args: []string{"--sysroot", root},
			env: []string{"LD_LIBRARY_PATH=" + filepath.Join(root, "lib/x86_64-linux-gnu") + ":" + filepath.Join(root, "lib")},
		}
	case b.family() == "gcc" && strings.HasSuffix(b.Compiler, newest): // as scripts/fetch-gcc.sh unpacks it
		root := filepath.Join(testenv.Cache(), "forky", "gcc"+newest)
		library := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
		loader := filepath.Join(library, "ld-linux-x86-64.so.2")
		return compiler{
			path: loader, args: []string{
				"--library-path", library, filepath.Join(root, "usr/bin/x86_64-linux-gnu-"+b.Compiler),
				"-B" + filepath.Join(root, "machine"), "-wrapper", loader + ",--library-path," + library, "-fno-use-linker-plugin",
			},
		}
	case strings.HasPrefix(b.Compiler, "go1."):
		// The go command fetches other versions of itself as modules.
		return compiler{path: "go", env: []string{"GOTOOLCHAIN=" + b.Compiler}}
	}
	return compiler{path: b.Compiler}
}

// Missing is the compiler of a build that is not installed, or "".
func (b *Build) Missing() string {
	for _, name := range []string{b.compiler().path, recorder} {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	if c := b.compiler(); c.path == "go" && len(c.env) > 0 {
		cmd := exec.Command(c.path, "version")
		cmd.Env = append(cmd.Environ(), c.env...)
		if cmd.Run() != nil {
			return b.Compiler // it cannot be fetched
		}
	}
	return ""
}

// Version returns the first line that the build's compiler prints of itself.
func (b *Build) Version() string {
	c := b.compiler()
	argument := "--version"
	if b.Language == Go && c.path == "go" {
		argument = "version"
	}
	cmd := exec.Command(c.path, append(c.args, argument)...)
	cmd.Env = append(cmd.Environ(), c.env...)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Sprintf("%s: %v", c.path, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
