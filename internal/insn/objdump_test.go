package insn_test

import (
	"bufio"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// listings are how binutils print the kernels' code, or LLVM where Debian 12 has none for an architecture, and what it says.
var listings = []struct {
	arch, folder, tool string
	args               []string
	// read says what an instruction is, in the words of describe; nothing of what is two.
	read func(name, operands string, addr uint64) string
}{
	{"s390x", "s390x", "s390x-linux-gnu-objdump", nil, readS390},
	{"ppc64el", "ppc64el", "powerpc64le-linux-gnu-objdump", []string{"-M", "raw"}, readPPC64},
	{"riscv64", "riscv64", "riscv64-linux-gnu-objdump", []string{"-M", "no-aliases"}, readRISCV},
	{"armhf", "armhf", "arm-linux-gnueabihf-objdump", nil, readARM},
	{"loong64", "loong64", "llvm-objdump-19", nil, readLoong},
	{"i386", "i386", "objdump", []string{"-M", "suffix"}, readX86},
	{"amd64", ".", "objdump", nil, readX86},
}

// How much of a kernel's code is compared without OBJDUMP_FULL=1: so many parts of so many
// bytes.
const sampledParts, sampledBytes = 6, 1 << 17

// TestObjdump compares sizes of instructions, and where they lead, with what objdump prints for the code
// of kernels: in parts that OBJDUMP_SEED chooses, or with OBJDUMP_FULL=1 all of it.
func TestObjdump(t *testing.T) {
	full := os.Getenv("OBJDUMP_FULL") == "1"
	seed, _ := strconv.ParseUint(os.Getenv("OBJDUMP_SEED"), 10, 64)
	for _, l := range listings {
		t.Run(l.arch, func(t *testing.T) {
			t.Parallel()
			found, err := filepath.Glob(filepath.Join(testenv.Cache(), l.folder, "vmlinux-*"))
			if err != nil || len(found) == 0 {
				if l.arch == "s390x" || full {
					testenv.Missing(t, "no %s kernel image: run \"make kernels\"", l.arch)
				}
				t.Skip("no kernel image: run \"make kernels\"") // CI does not fetch this one
			}
			c := comparison{arch: insn.For(l.arch), read: l.read, kinds: make(map[string]int)}
			parts := sampledParts
			if full {
				parts = 0
			}
			c.file(t, testenv.Tool(t, l.tool), l.args, found[0], parts, seed)
			c.report(t)
		})
	}
}

// TestObjdumpOfPrograms compares whole programs of amd64: the C library, which has code for all processors, one that Go's compiler made,
// and one with AVX-512.
func TestObjdumpOfPrograms(t *testing.T) {
	tool := testenv.Tool(t, "objdump")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "wide.c")
	if err := os.WriteFile(source, []byte(wideSource), 0o600); err != nil {
		t.Fatal(err)
	}
	wide := filepath.Join(dir, "wide")
	out, err := exec.Command(testenv.Tool(t, "gcc-12"), "-O3", "-march=sapphirerapids", "-mprefer-vector-width=512", "-ffast-math", "-shared", "-fPIC", "-o", wide, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	libc, err := filepath.Glob("/lib/x86_64-linux-gnu/libc.so.6")
	if err != nil || len(libc) == 0 {
		testenv.Missing(t, "no C library of amd64")
	}
	for _, path := range append(libc, self, wide) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			c := comparison{arch: insn.For("amd64"), read: readX86, kinds: make(map[string]int), few: path == wide}
			c.file(t, tool, nil, path, 0, 0)
			c.report(t)
		})
	}
}

// wideSource is what GCC makes vector code of.
const wideSource = `
void scale(float *a, const float *b, int n) { for (int i = 0; i < n; i++) a[i] = b[i] > 1 ? a[i] * b[i] + 3 : b[i] / a[i]; }
void mix(short *a, const signed char *b, int n) { for (int i = 0; i < n; i++) a[i] = (a[i] >> 3) ^ b[i] * 5; }
long sum(const long *a, const int *at, int n) { long s = 0; for (int i = 0; i < n; i++) s += a[at[i]] << (i & 7); return s; }
void turn(unsigned *a, int n) { for (int i = 0; i < n; i++) a[i] = a[i] << 7 | a[i] >> 25; }
double dot(const double *a, const double *b, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
int count(const unsigned char *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += __builtin_popcount(a[i]) > 3; return s; }
`

// file compares a file's code: all of it, or so many parts that a seed chooses.
func (c *comparison) file(t *testing.T, tool string, args []string, path string, parts int, seed uint64) {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS || s.Size == 0 {
			continue
		}
		if c.code, err = s.Data(); err != nil {
			t.Fatal(err)
		}
		c.addr = s.Addr
		if parts == 0 {
			c.run(t, tool, args, path, s.Name, 0, s.Size)
			continue
		}
		if s.Name != ".text" {
			continue
		}
		random := rand.New(rand.NewPCG(seed, 0))
		for range parts {
			from := random.Uint64N(s.Size) &^ 7
			c.run(t, tool, args, path, s.Name, from, min(from+sampledBytes, s.Size))
		}
	}
}

func (c *comparison) report(t *testing.T) {
	t.Logf("%d instructions, %d words that objdump does not know; %v", c.compared, c.unknown, c.kinds)
	if c.different > 0 {
		t.Errorf("%d differ", c.different)
	}
	if !c.few && (c.compared < 100000 || len(c.kinds) < 6) || c.compared < 500 {
		t.Error("too few")
	}
}

type comparison struct {
	arch  *insn.Arch
	read  func(name, operands string, addr uint64) string
	code  []byte
	addr  uint64
	kinds map[string]int
	few   bool // it is a small program

	compared, unknown, different int
}

// label is a line of objdump at the beginning of a function.
var label = regexp.MustCompile(`^[0-9a-f]+ <[^+]+>:$`)

// line is a line of objdump with an instruction.
var line = regexp.MustCompile(`^\s*([0-9a-f]+):\s([0-9a-f ]+)\t(\S+)\s*(.*)$`)

// run compares one part of a section.
func (c *comparison) run(t *testing.T, tool string, args []string, path, section string, from, to uint64) {
	cmd := exec.Command(tool, slices.Concat(args, []string{
		"-d", "-w", "-j", section, fmt.Sprintf("--start-address=%#x", c.addr+from), fmt.Sprintf("--stop-address=%#x", c.addr+to), path,
	})...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	// Where instructions begin anywhere, a part may begin in one, and more that are none follow.
	known := from == 0 || c.arch.Fixed > 0 || c.arch.Step > 0
	for first := true; scanner.Scan(); {
		if known = known || label.MatchString(scanner.Text()); !known {
			continue
		}
		m := line.FindStringSubmatch(scanner.Text())
		if m == nil {
			continue
		}
		if first { // may be the middle of an instruction
			if first = false; from > 0 {
				continue
			}
		}
		addr, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		c.compare(t, addr, len(strings.ReplaceAll(m[2], " ", ""))/2, m[3], m[4], addr+16 > c.addr+to)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
}

func (c *comparison) compare(t *testing.T, addr uint64, size int, name, operands string, cut bool) {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "rex") /* before what is no instruction */ || name == "<unknown>" || name == "Address" /* is out of bounds, at the end */ || strings.Contains(operands, "<UNDEFINED>") || strings.Contains(operands, "undefined") || strings.Contains(operands, "(bad)") {
		c.unknown++
		return
	}
	operands, _, _ = strings.Cut(operands, "#")
	operands, _, _ = strings.Cut(operands, "@")
	operands, _, _ = strings.Cut(operands, ";")
	operands, _, _ = strings.Cut(operands, "<")
	want := c.read(name, strings.TrimSpace(operands), addr)
	if want == "" {
		return
	}
	in, ok := c.arch.Next(c.code[addr-c.addr:])
	got := describe(in, ok, addr)
	if cut && (in.Size > size || name == "(bad)") {
		return // the part ends in it
	}
	kind, _, _ := strings.Cut(want, " ")
	c.kinds[kind]++
	c.compared++
	if want = fmt.Sprintf("%d %s", size, want); got != want {
		if c.different++; c.different <= 20 {
			t.Errorf("%#x: %s %s: got %q, want %q", addr, name, operands, got, want)
		}
	}
}

// describe says what an instruction is, as readers of listings do.
func describe(in insn.Insn, ok bool, addr uint64) string {
	kind := "plain"
	switch {
	case !ok:
		kind = "?"
	case in.Call && in.Target != 0:
		kind = fmt.Sprintf("call %#x", addr+uint64(in.Target))
	case in.Call:
		kind = "call"
	case in.Branches && in.Onward:
		kind = fmt.Sprintf("branch %#x", addr+uint64(in.Target))
	case in.Branches:
		kind = fmt.Sprintf("jump %#x", addr+uint64(in.Target))
	case in.Lost && in.Onward:
		kind = "branch"
	case in.Lost:
		kind = "jump"
	case in.Leaves:
		kind = "returns-if"
	case in.Trap:
		kind = "trap"
	case in.Nop:
		kind = "nop"
	case !in.Onward:
		kind = "return"
	}
	return fmt.Sprintf("%d %s", in.Size, kind)
}

var x86Branch = regexp.MustCompile(`^(j[a-z]+|loop[a-z]*)$`)

func readX86(name, operands string, _ uint64) string {
	fields := strings.Fields(name + " " + operands)
	for len(fields) > 1 && slices.Contains([]string{"lock", "rep", "repz", "repnz", "cs", "ds", "es", "fs", "gs", "ss", "data16", "addr16", "notrack", "bnd"}, fields[0]) {
		fields = fields[1:]
	}
	name, operands = fields[0], strings.Join(fields[1:], " ")
	name, _, _ = strings.Cut(name, ",") // a hint: jne,pn
	text, to := last(operands)
	indirect := strings.HasPrefix(text, "*") || strings.HasPrefix(operands, "*")
	if indirect {
		to = ""
	}
	switch {
	case slices.Contains([]string{"finit", "fclex", "fsave", "fstenv", "fstcw", "fstsw"}, name):
		return "" // FWAIT, and another
	case name == "jmp" || name == "jmpl" || name == "jmpw", name == "ljmp" || name == "ljmpl" || name == "ljmpw":
		return "jump" + to
	case strings.HasPrefix(name, "call"), strings.HasPrefix(name, "lcall"):
		return "call" + to
	case x86Branch.MatchString(name), name == "xbegin":
		return "branch" + to
	case strings.HasPrefix(name, "ret"), strings.HasPrefix(name, "lret"), strings.HasPrefix(name, "iret"), strings.HasPrefix(name, "sysret"), strings.HasPrefix(name, "sysexit"):
		return "return"
	case name == "ud1" || name == "ud1l", name == "ud2", name == "int3", name == "int" && operands == "$0x3":
		return "trap"
	case strings.HasPrefix(name, "nop"), strings.HasPrefix(name, "xchg") && operands == "%ax,%ax":
		return "nop"
	}
	return "plain"
}

func readLoong(name, operands string, addr uint64) string {
	text, _ := last(operands)
	to := ""
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		to = fmt.Sprintf(" %#x", addr+uint64(n)) // a distance
	}
	switch name {
	case "b":
		return "jump" + to
	case "bl":
		return "call" + to
	case "beqz", "bnez", "bceqz", "bcnez", "beq", "bne", "blt", "bge", "bltu", "bgeu", "bltz", "bgez", "bgtz", "blez":
		return "branch" + to
	case "ret", "ertn":
		return "return"
	case "jr":
		return "jump"
	case "jirl":
		if strings.HasPrefix(operands, "$zero,") {
			return "jump"
		}
		return "call"
	case "break":
		return "trap"
	case "nop":
		return "nop"
	}
	return "plain"
}

// last returns the last operand, and as an address.
func last(operands string) (text string, addr string) {
	i := strings.LastIndexAny(operands, ", ")
	text = operands[i+1:]
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return text, ""
	}
	return text, fmt.Sprintf(" %#x", n)
}

var (
	s390Relative = regexp.MustCompile(`^(jg?(o|h|nle|l|nhe|lh|ne|e|nlh|he|nl|le|nh|no|p|m|z|nz|np|nm)|c[l]?[g]?[ri]j(h|l|e|ne|nh|nl|he|le|)|brct|brctg|brcth|brxh|brxle|brxhg|brxlg)$`)
	s390Register = regexp.MustCompile(`^b(o|h|nle|l|nhe|lh|ne|e|nlh|he|nl|le|nh|no|p|m|z|nz|np|nm)r?$`)
)

func readS390(name, operands string, addr uint64) string {
	text, to := last(operands)
	switch {
	case name == "br" && text == "%r14", name == "pr", name == "lpsw", name == "lpswe", name == "lpswey":
		return "return"
	case name == "br" && text == "%r0", name == "nopr", name == "nop", name == "jnop", name == "jgnop", name == "bcr" && text == "%r0",
		s390Register.MatchString(name) && text == "%r0":
		return "nop"
	case name == "br", name == "b", name == "bi", name == "bsm":
		return "jump"
	case (name == "j" || name == "jg") && to == fmt.Sprintf(" %#x", addr+2), name == "mc" && operands == "0,0":
		return "trap"
	case name == "j", name == "jg":
		return "jump" + to
	case name == "brasl", name == "bras":
		return "call" + to
	case (name == "basr" || name == "balr") && text != "%r0", name == "bas", name == "bal", name == "bassm" && text != "%r0":
		return "call"
	case s390Relative.MatchString(name) && to == fmt.Sprintf(" %#x", addr+2) && name[0] == 'j':
		return "plain" // a trap under a condition
	case s390Relative.MatchString(name):
		return "branch" + to
	case s390Register.MatchString(name) && text == "%r14":
		return "returns-if"
	case s390Register.MatchString(name), name == "bctr" && text != "%r0", name == "bctgr" && text != "%r0", name == "bct", name == "bctg":
		return "branch"
	}
	return "plain"
}

func readPPC64(name, operands string, addr uint64) string {
	_, to := last(operands)
	fields := strings.Split(operands, ",")
	always := fields[0] == "20"
	switch name {
	case "b":
		return "jump" + to
	case "bl":
		return "call" + to
	case "ba":
		return "jump"
	case "bla":
		return "call"
	case "bc":
		if always {
			return "jump" + to
		}
		return "branch" + to
	case "bcl":
		if operands == fmt.Sprintf("20,4*cr7+so,%x", addr+4) || operands == fmt.Sprintf("20,31,%x", addr+4) {
			return "plain"
		}
		return "call" + to
	case "bclr", "blr":
		if always || name == "blr" {
			return "return"
		}
		return "returns-if"
	case "bclrl", "bcctrl", "bctarl", "blrl", "bctrl":
		return "call"
	case "bcctr", "bctar", "bctr":
		if always || name == "bctr" {
			return "jump"
		}
		return "branch"
	case "rfid", "hrfid", "rfscv", "urfid":
		return "return"
	case "tw", "td", "twi", "tdi":
		if fields[0] == "31" {
			return "trap"
		}
	case "trap":
		return "trap"
	case "ori":
		if operands == "r0,r0,0" {
			return "nop"
		}
	case "nop":
		return "nop"
	}
	return "plain"
}

func readRISCV(name, operands string, _ uint64) string {
	text, to := last(operands)
	switch name {
	case "jal":
		if strings.HasPrefix(operands, "zero,") {
			return "jump" + to
		}
		return "call" + to
	case "c.j":
		return "jump" + to
	case "jalr":
		switch {
		case operands == "zero,0(ra)":
			return "return"
		case strings.HasPrefix(operands, "zero,"):
			return "jump"
		}
		return "call"
	case "c.jr":
		if text == "ra" {
			return "return"
		}
		return "jump"
	case "c.jalr":
		return "call"
	case "beq", "bne", "blt", "bge", "bltu", "bgeu", "c.beqz", "c.bnez":
		return "branch" + to
	case "ebreak", "c.ebreak", "c.unimp":
		return "trap"
	case "sret", "mret":
		return "return"
	case "c.nop":
		return "nop"
	case "c.addi":
		if operands == "zero,0" {
			return "nop"
		}
	case "addi":
		if operands == "zero,zero,0" {
			return "nop"
		}
	}
	return "plain"
}

var (
	armBranch = regexp.MustCompile(`^(b|bl|blx|bx|bxj)(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|)$`)
	armCond   = regexp.MustCompile(`(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)$`)
)

func readARM(name, operands string, _ uint64) string {
	text, to := last(operands)
	maybe := armCond.MatchString(name) && name != "teq" && name != "bls" && name != "svc" && name != "mls" && name != "movs" || name == "bls"
	branchOr := func(kind string) string {
		switch {
		case !maybe:
			return kind
		case kind == "return":
			return "returns-if"
		}
		return strings.Replace(kind, "jump", "branch", 1)
	}
	if m := armBranch.FindStringSubmatch(name); m != nil {
		maybe = m[2] != ""
		switch {
		case m[1] == "b":
			return branchOr("jump" + to)
		case m[1] == "bl", m[1] == "blx":
			return "call" + to
		case text == "lr":
			return branchOr("return")
		}
		return branchOr("jump")
	}
	switch {
	case strings.HasPrefix(name, "udf"), strings.HasPrefix(name, "bkpt"):
		return "trap"
	case name == "nop":
		return "nop"
	case name == "eret", strings.HasPrefix(name, "rfe"):
		return "return"
	case strings.HasPrefix(name, "pop") && strings.Contains(operands, "pc"):
		return branchOr("return")
	case strings.HasPrefix(name, "ldm") && strings.Contains(operands, "pc"):
		maybe = armCond.MatchString(strings.TrimPrefix(name, "ldm")) && !slices.Contains([]string{"ldmdb", "ldmib", "ldmda", "ldmia", "ldmfd"}, name)
		if strings.HasPrefix(operands, "sp") || strings.HasPrefix(operands, "fp") || strings.HasPrefix(operands, "r11") {
			return branchOr("return")
		}
		return branchOr("jump")
	case strings.HasPrefix(operands, "pc,"):
		switch {
		case strings.HasPrefix(name, "mov") && text == "lr", strings.HasPrefix(name, "subs") && strings.HasPrefix(operands, "pc, lr"):
			return branchOr("return")
		case strings.HasPrefix(name, "ldr") && strings.HasPrefix(operands, "pc, [sp],"):
			return branchOr("return")
		case slices.Contains([]string{"cmp", "cmn", "tst", "teq"}, name[:3]):
			return "plain"
		}
		return branchOr("jump")
	}
	return "plain"
}
