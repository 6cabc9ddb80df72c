package guest_test

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/probed"
	"github.com/bpfprologue/bpfprologue/internal/proof/guest"
	"github.com/bpfprologue/bpfprologue/internal/proof/harm"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// vectorModules have the vector code, and glueModules what it needs, and what hands it data.
var (
	vectorModules = []string{
		"aesni-intel", "serpent-avx-x86_64", "serpent-avx2", "serpent-sse2-x86_64", "twofish-avx-x86_64", "twofish-x86_64-3way", "camellia-x86_64", "camellia-aesni-avx-x86_64", "camellia-aesni-avx2",
		"cast6-avx-x86_64", "chacha-x86_64", "sha1-ssse3", "sha256-ssse3", "sha512-ssse3", "crct10dif-pclmul", "crc32c-intel", "crc32-pclmul", "raid6_pq", "xor",
	}
	glueModules = []string{
		"algif_hash", "algif_skcipher", "ecb", "ctr", "xts", "serpent_generic", "twofish_generic", "camellia_generic", "cast6_generic", "chacha_generic", "sha512_generic", "crc32_generic",
		"brd", "raid456",
	}
)

// TestVectorCode has kprobes at all instructions of vector code in modules, but where the table of refusals has them: ciphers, hashes and
// arrays of disks come to the same, which is what code without vectors comes to, and the kernel says nothing.
func TestVectorCode(t *testing.T) {
	t.Parallel()
	k := kernelsOfPC(t)[0]
	dir := filepath.Join(filepath.Dir(k.Module), "vectors")
	if _, err := os.Stat(dir); err != nil {
		testenv.Missing(t, "no modules with vector code: run \"make vmlinux\": %v", err)
	}
	x := guest.Probing{Work: guest.Vectors, Want: int(setting(t, "GUEST_FUNCTIONS", either(400, 12))), Together: 2}
	files := make(map[string]string)
	for _, name := range inOrder(t, dir, append(slices.Clone(glueModules), vectorModules...)) {
		path := "/modules/" + name + ".ko"
		files[path] = filepath.Join(dir, name+".ko")
		x.Modules = append(x.Modules, path)
	}
	refused := 0
	for _, name := range vectorModules {
		list, n := functionsOf(t, filepath.Join(dir, name+".ko"))
		x.Functions, refused = append(x.Functions, list...), refused+n
	}
	seed := setting(t, "GUEST_SEED", harm.Seed)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(x.Functions), func(i, j int) { x.Functions[i], x.Functions[j] = x.Functions[j], x.Functions[i] })
	got := withProbe(t, k, &x, files)
	t.Logf("seed %d: %d functions of %d tried, %d run, %d probes, refused by the kernel %v, by us %d, %d hits", seed, got.Tried, len(x.Functions), got.Ran, got.Probes, got.Refused, refused, got.Hits)
	if got.Ran < min(x.Want, 30) || got.Hits < uint64(got.Probes) || refused == 0 {
		t.Error("the work says nothing")
	}
	if n := strings.Count(got.Work, " true"); n < 25 || strings.Contains(got.Work, "read what was written false") {
		t.Errorf("%d of the results are those of other code", n)
	}
}

// inOrder returns names of modules with those that they need before them, as they are loaded.
func inOrder(t *testing.T, dir string, names []string) (out []string) {
	t.Helper()
	var need func(name string)
	need = func(name string) {
		if slices.Contains(out, name) {
			return
		}
		path := filepath.Join(dir, name+".ko")
		if _, err := os.Stat(path); err != nil {
			name = strings.ReplaceAll(name, "_", "-") // of modules both are one
			path = filepath.Join(dir, name+".ko")
		}
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Section(".modinfo").Data()
		if err != nil {
			t.Fatal(err)
		}
		for entry := range strings.SplitSeq(string(info), "\x00") {
			if list, ok := strings.CutPrefix(entry, "depends="); ok && list != "" {
				for other := range strings.SplitSeq(list, ",") {
					need(other)
				}
			}
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range names {
		need(name)
	}
	return out
}

// functionsOf returns the functions of a module, which has no debug information, with the instructions at which a kprobe is allowed, and
// how many it is not allowed at.
func functionsOf(t *testing.T, path string) (out []guest.Function, refused int) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	const large = 3000 // bytes: one with more has hits all the time
	module := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".ko"), "-", "_")
	kprobe := probed.For("amd64").Kprobe
	for i := range symbols {
		s := &symbols[i]
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section >= elf.SectionIndex(len(f.Sections)) || f.Sections[s.Section].Name != ".text" || s.Size == 0 || s.Size > large {
			continue
		}
		text, err := f.Sections[s.Section].Data()
		if err != nil {
			t.Fatal(err)
		}
		code := text[s.Value : s.Value+s.Size]
		x := guest.Function{Name: s.Name, At: module + ":" + s.Name}
		for _, off := range instructions(code) {
			if kprobe(code[off:]) != "" {
				refused++
				continue
			}
			x.Offsets = append(x.Offsets, off)
		}
		if len(x.Offsets) > 0 {
			out = append(out, x)
		}
	}
	return out, refused
}
