package twin

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed testdata
var testdata embed.FS

// counter is the source of what counts calls in the build that A is checked with.
const counter = "count.c"

// Program is a program of which there are sources, with how to compile and run it.
type Program struct {
	Name    string
	Package string // of Debian, with its sources
	sources []string
	leave   []string // sources that are not compiled
	options []string
	// inputs are the files in the folder in which it runs: what is copied there, from the sources or from testdata.
	inputs map[string]string
	runs   [][]string // arguments of each run
}

// Programs returns the programs.
func Programs() []Program {
	library := []string{"adler32.c", "compress.c", "crc32.c", "deflate.c", "gz*.c", "inf*.c", "trees.c", "uncompr.c", "zutil.c"}
	large := []string{"-DHAVE_UNISTD_H", "-D_LARGEFILE64_SOURCE=1", "-I."}
	return []Program{
		{
			Name: "lua", Package: "lua5.4", sources: []string{"src/*.c"}, leave: []string{"luac.c"},
			// Without a seed from the clock and from addresses, and without a cache by addresses.
			options: []string{"-DLUA_USE_POSIX", "-Dluai_makeseed(L)=42", "-DSTRCACHE_N=1", "-DSTRCACHE_M=1", "-lm"},
			inputs:  map[string]string{"run.lua": "testdata/run.lua"}, runs: [][]string{{"run.lua"}},
		},
		{
			Name: "zlib", Package: "zlib", sources: append(slices.Clone(library), "test/example.c"), options: large,
			runs: [][]string{{"made.gz"}},
		},
		{
			Name: "minigzip", Package: "zlib", sources: append(slices.Clone(library), "test/minigzip.c"), options: large,
			inputs: map[string]string{"text": "README"},
			runs:   [][]string{{"-9", "text"}, {"-d", "text.gz"}, {"-1", "text"}, {"-d", "text.gz"}},
		},
		{
			Name: "bzip2", Package: "bzip2", options: []string{"-D_FILE_OFFSET_BITS=64"},
			sources: []string{"blocksort.c", "huffman.c", "crctable.c", "randtable.c", "compress.c", "decompress.c", "bzlib.c", "bzip2.c"},
			inputs:  map[string]string{"text": "LICENSE"}, runs: [][]string{{"text"}, {"-d", "text.bz2"}},
		},
		{
			Name: "lz4", Package: "lz4", sources: []string{"lib/*.c", "programs/*.c"}, options: []string{"-DXXH_NAMESPACE=LZ4_", "-Ilib"},
			inputs: map[string]string{"text": "README.md"},
			runs:   [][]string{{"-q", "-1", "text", "fast"}, {"-q", "-9", "text", "small"}, {"-q", "-d", "small", "again"}},
		},
		{
			Name: "lzip", Package: "lzip", sources: []string{"*.cc"}, options: []string{`-DPROGVERSION="1"`, "-lstdc++"},
			inputs: map[string]string{"text": "testdata/run.lua"},
			runs:   [][]string{{"-k", "text"}, {"-0", "-k", "-f", "text"}, {"-l", "text.lz"}, {"-t", "text.lz"}},
		},
		{
			Name: "qrencode", Package: "qrencode",
			sources: []string{"bitstream.c", "mask.c", "mmask.c", "mqrspec.c", "qr*.c", "rsecc.c", "split.c"},
			options: []string{
				"-DMAJOR_VERSION=4", "-DMINOR_VERSION=1", "-DMICRO_VERSION=1", `-DVERSION="4.1.1"`, "-DSTATIC_IN_RELEASE=static", "-DHAVE_STRDUP=1",
			},
			runs: [][]string{{"-t", "ASCII", "-o", "-", "what is encoded"}, {"-M", "-v", "3", "-t", "UTF8", "-o", "-", "0123"}, {"-t", "SVG", "-o", "-", "https://example.org/"}},
		},
	}
}

// Sources is where a program's sources are; they are not fetched if ok is false.
func (p *Program) Sources(cache string) (dir string, ok bool) {
	dir = filepath.Join(cache, "source", p.Package)
	_, err := os.Stat(dir)
	return dir, err == nil
}

// Flavour is how programs are compiled.
type Flavour struct {
	Name     string
	Compiler string
	Options  []string
}

// Flavours returns how B is compiled, as programs are shipped.
func Flavours() []Flavour {
	return []Flavour{
		{"gcc -O2", "gcc-12", []string{"-O2"}},
		{"gcc -O3", "gcc-12", []string{"-O3"}},
		{"gcc -Os", "gcc-12", []string{"-Os"}},
		{"gcc -O2 -flto", "gcc-12", []string{"-O2", "-flto"}},
		{"clang-14 -O2", "clang-14", []string{"-O2"}},
	}
}

var (
	// plain is how A is compiled: where it is linked is where it runs, so that addresses to which runs return need no base.
	plain = Flavour{"A", "gcc-12", []string{"-O0", "-no-pie"}}
	// counted is the build that counts calls.
	counted = Flavour{"counted", "gcc-12", []string{"-O0", "-no-pie", "-finstrument-functions"}}
)

// work is a folder with what is built of a program.
type work struct {
	*Program
	sources, dir string
	ends         bool // runs are compared where they end, by their values alone
}

// build compiles the program and returns its path.
func (w *work) build(ctx context.Context, f *Flavour) (string, error) {
	out := filepath.Join(w.dir, w.Name+"-"+strings.ReplaceAll(f.Name, " ", ""))
	args := append([]string{"-g", "-w", "-o", out}, f.Options...)
	for _, pattern := range w.Program.sources {
		found, err := filepath.Glob(filepath.Join(w.sources, pattern))
		if err != nil || len(found) == 0 {
			return "", fmt.Errorf("no %s in %s: %w", pattern, w.sources, err)
		}
		for _, path := range found {
			if !slices.Contains(w.leave, filepath.Base(path)) {
				args = append(args, strings.TrimPrefix(path, w.sources+"/"))
			}
		}
	}
	if f.Name == counted.Name {
		object := filepath.Join(w.dir, counter)
		data, err := testdata.ReadFile("testdata/" + counter)
		if err == nil {
			err = os.WriteFile(object, data, 0o600)
		}
		if err != nil {
			return "", err
		}
		args = append(args, object)
	}
	return out, command(ctx, w.sources, f.Compiler, append(args, w.options...)...)
}

// run runs the program's commands in a new folder, and returns all that they print. Addresses are the same in each run unless
// random is set.
func (w *work) run(ctx context.Context, program string, random bool, env ...string) (string, error) {
	dir, err := os.MkdirTemp(w.dir, "run")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, from := range w.inputs {
		read := testdata.ReadFile
		if !strings.HasPrefix(from, "testdata/") {
			read, from = os.ReadFile, filepath.Join(w.sources, from)
		}
		data, err := read(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	var out strings.Builder
	// Its name is among its arguments, so it is the same in all builds. Probes follow the file.
	if err := os.Link(program, filepath.Join(dir, w.Name)); err != nil {
		return "", err
	}
	for _, args := range w.runs {
		args = append([]string{"./" + w.Name}, args...)
		if !random {
			args = append([]string{"setarch", "-R"}, args...)
		}
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Dir, c.Stdout, c.Stderr, c.Env = dir, &out, &out, append(os.Environ(), env...)
		if err := c.Run(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out.String())
		}
	}
	return out.String(), nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
