package jumptable_test

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/dwarftest"
	"github.com/bpfprologue/bpfprologue/internal/insn"
	"github.com/bpfprologue/bpfprologue/internal/jumptable"
	"github.com/bpfprologue/bpfprologue/internal/testenv"
)

// TestJumpTables compares the targets of indirect jumps with the labels that compilers write
// into their assembler code. Labels become symbols: those of compilers begin with ".L", which
// assemblers do not keep.
func TestJumpTables(t *testing.T) {
	type build struct{ compiler, arch, flags string }
	var builds []build
	for _, c := range []string{"gcc-11", "gcc-12", "clang-14", "clang-15", "clang-16"} {
		for _, level := range []string{"-O0", "-O1", "-O2", "-O3", "-Os"} {
			builds = append(builds, build{c, "amd64", level + " -fno-pie"}, build{c, "amd64", level + " -fPIE -fcf-protection=full"})
			if strings.HasPrefix(c, "clang") {
				builds = append(builds, build{c, "arm64", level + " --target=aarch64-linux-gnu"}, build{c, "arm64", level + " -fPIE -mbranch-protection=standard --target=aarch64-linux-gnu"})
			}
		}
	}
	builds = append(builds, build{"aarch64-linux-gnu-gcc-12", "arm64", "-Os"}) // at -O2 it makes comparisons of all but two
	for _, b := range builds {
		t.Run(b.compiler+" "+b.arch+" "+b.flags, func(t *testing.T) {
			t.Parallel()
			compareTables(t, insn.For(b.arch), switches(t, b.compiler, b.arch, strings.Fields(b.flags)))
		})
	}
}

// unlimited are the functions whose jumps have no table, or one whose length nothing says: a
// default that is not reachable leaves no comparison, and a mask may have more values than the
// table entries.
var unlimited = map[string]bool{"open_end": true, "open_mask": true, "tail": true, "hook": true, "computed": true, "masked": true, "flipped": true, "shifted": true}

// entire are those of them whose tables have an entry for each number that a mask or a shift leaves, or end where x86's tables show.
var entire = map[string]bool{"masked": true, "flipped": true, "shifted": true, "open_end": true, "open_mask": true}

// elsewhere are those of them whose jumps lead out of the function.
var elsewhere = map[string]bool{"tail": true}

// tablesOf is a linked program, and the tables that its functions have by the assembler code.
type tablesOf struct {
	file   *elf.File
	tables map[string][][]uint64 // by function: sets of targets, in order
}

var tableEntry = regexp.MustCompile(`^\t\.(?:byte|hword|2byte|value|word|long|quad|xword|4byte|8byte)\t\(?(L_[\w.$]+)(?: ?[-)].*)?$`)

func switches(t *testing.T, compiler, arch string, flags []string) tablesOf {
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(testenv.Tool(t, name), args...)
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, b)
		}
	}
	text, object, program := filepath.Join(dir, "s.s"), filepath.Join(dir, "s.o"), filepath.Join(dir, "s")
	run(compiler, append(flags, "-ffreestanding", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-S", "-o", text, "testdata/switches.c")...)
	b, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	s := strings.ReplaceAll(string(b), ".L", "L_")
	if err := os.WriteFile(text, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	run(compiler, append(flags, "-c", "-o", object, text)...)
	link := []string{"-e", "0", "--defsym=more=0", "--defsym=stop=0", "-o", program, object}
	if slices.Contains(flags, "-fPIE") {
		link = append(link, "-pie", "--no-dynamic-linker")
	}
	run(map[string]string{"amd64": "ld.bfd", "arm64": "ld.lld-14"}[arch], link...)
	out := tablesOf{tables: make(map[string][][]uint64)}
	if out.file, err = elf.Open(program); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.file.Close() })
	symbols, err := out.file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	address := make(map[string]uint64)
	for _, s := range symbols {
		address[s.Name] = s.Value
	}
	function := func(addr uint64) string {
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && addr >= s.Value && addr-s.Value < s.Size {
				return s.Name
			}
		}
		return ""
	}
	var table []uint64
	for line := range strings.Lines(s) {
		m := tableEntry.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m != nil && address[m[1]] != 0 {
			table = append(table, address[m[1]])
			continue
		}
		if len(table) > 0 {
			slices.Sort(table)
			f := function(table[0])
			out.tables[f] = append(out.tables[f], slices.Compact(table))
		}
		table = nil
	}
	return out
}

// compareTables follows the code of each function from its beginning, also through its tables.
func compareTables(t *testing.T, a *insn.Arch, p tablesOf) {
	symbols, err := p.file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range symbols {
		if elf.ST_TYPE(f.Info) != elf.STT_FUNC || f.Size == 0 {
			continue
		}
		code := insn.Code{Addr: f.Value, Bytes: contents(p.file, f.Value, int(f.Size))}
		jumps, got := follow(t, a, code, func(addr uint64, n int) []byte { return contents(p.file, addr, n) })
		want := p.tables[f.Name]
		for at, targets := range got {
			if !slices.ContainsFunc(want, func(w []uint64) bool { return slices.Equal(w, targets) }) && !elsewhere[f.Name] {
				t.Errorf("%s: the jump at %#x: %#x, want one of %#x", f.Name, at, targets, want)
			}
			found++
		}
		if jumps > len(got) && (!unlimited[f.Name] || entire[f.Name] && a.Fixed == 0) {
			t.Errorf("%s: %d indirect jumps, %d with a table", f.Name, jumps, len(got))
		}
	}
	if found < 10 {
		t.Errorf("only %d jumps with a table", found)
	}
}

// TestKernelTables: of the 172 indirect jumps of Debian's arm64 kernel, 165 are switches with a table
// that is found, and all lead to the function's own code. Four of these load the address of the
// table from the frame. The others are four jumps of assembler code, the interpreter of BPF, and two
// switches (audit_data_to_entry, ima_parse_rule) to which ways seem to lead, on from calls or traps
// that do not return, on which the address of the table is not loaded.
func TestKernelTables(t *testing.T) {
	path := testenv.VmlinuxOf(t, "arm64")
	if path == "" {
		t.Skip("another image was chosen")
	}
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var sections []insn.Code
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		d, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		sections = append(sections, insn.Code{Addr: s.Addr, Bytes: d})
	}
	read := func(addr uint64, n int) []byte {
		for _, s := range sections {
			if off := addr - s.Addr; off <= uint64(len(s.Bytes)) && uint64(n) <= uint64(len(s.Bytes))-off {
				return s.Bytes[off : off+uint64(n)]
			}
		}
		return nil
	}
	found, done := 0, make(map[uint64]bool)
	for _, f := range symbols {
		if elf.ST_TYPE(f.Info) != elf.STT_FUNC || f.Size == 0 || done[f.Value] {
			continue
		}
		done[f.Value] = true
		_, tables := follow(t, insn.For("arm64"), insn.Code{Addr: f.Value, Bytes: read(f.Value, int(f.Size))}, read)
		for at, targets := range tables {
			found++
			for _, to := range targets {
				if to-f.Value >= f.Size {
					t.Errorf("%s: the jump at %#x leads to %#x", f.Name, at, to)
				}
			}
		}
	}
	if found < 165 {
		t.Errorf("only %d", found)
	}
}

// follow returns the number of indirect jumps that lead from the beginning of a function on,
// and the targets of those that have a table. One search for all jumps gives the answers of a new one for each.
func follow(t *testing.T, a *insn.Arch, code insn.Code, read func(uint64, int) []byte) (jumps int, tables map[uint64][]uint64) {
	tables = make(map[uint64][]uint64)
	known := make(map[uint32]insn.Insn)
	todo := []uint64{0}
	for {
		for len(todo) > 0 {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if at >= uint64(len(code.Bytes)) {
				continue
			}
			if _, ok := known[uint32(at)]; ok {
				continue
			}
			in, ok := a.Next(code.Bytes[at:])
			if !ok {
				continue
			}
			known[uint32(at)] = in
			if in.Branches {
				todo = append(todo, at+uint64(in.Target))
			}
			if in.Onward {
				todo = append(todo, at+uint64(in.Size))
			}
		}
		var starts []uint32
		for at := range known {
			starts = append(starts, at)
		}
		slices.Sort(starts)
		jumps = 0
		var led []jumptable.Edge
		one := jumptable.New(a, &jumptable.Code{Code: code, Starts: starts}, read)
		lead := func(at uint32, targets, again []uint64) {
			if !slices.Equal(targets, again) {
				t.Errorf("%#x: %#x, and by a search for several jumps %#x", code.Addr+uint64(at), targets, again)
			}
			for _, to := range targets {
				todo = append(todo, to-code.Addr)
				e := jumptable.Edge{From: at, To: uint32(to - code.Addr)}
				led = append(led, e)
				one.Lead(e)
			}
		}
		for _, at := range starts {
			if in := known[at]; !in.Lost || in.Onward {
				continue
			}
			jumps++
			addr := code.Addr + uint64(at)
			if tables[addr] != nil {
				continue
			}
			targets, ok := jumptable.New(a, &jumptable.Code{Code: code, Starts: starts, Led: slices.Clone(led)}, read).Targets(at)
			if ok {
				tables[addr] = targets
			}
			again, _ := one.Targets(at)
			lead(at, targets, again)
		}
		within := func(addr uint64) bool { return addr-code.Addr < uint64(len(code.Bytes)) }
		for _, at := range starts {
			in, addr := known[at], code.Addr+uint64(at)
			if !in.Lost || in.Onward || tables[addr] != nil || len(todo) > 0 {
				continue
			}
			targets, ok := jumptable.New(a, &jumptable.Code{Code: code, Starts: starts, Led: slices.Clone(led)}, read).Open(at, within)
			if ok {
				tables[addr] = targets
			}
			again, _ := one.Open(at, within)
			lead(at, targets, again)
		}
		if len(todo) == 0 {
			return jumps, tables
		}
	}
}

// contents returns bytes of a program, or nil.
func contents(f *elf.File, addr uint64, n int) []byte {
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Type == elf.SHT_NOBITS || addr < s.Addr || addr-s.Addr > s.Size || uint64(n) > s.Size-(addr-s.Addr) {
			continue
		}
		b := make([]byte, n)
		if _, err := s.ReadAt(b, int64(addr-s.Addr)); err == nil {
			return b
		}
	}
	return nil
}

// TestKernelSwitches: switches as GCC 12, 14 and 16 write them in Debian's kernels. The last instruction jumps.
func TestKernelSwitches(t *testing.T) {
	const at = 0x10000
	for _, tt := range []struct {
		arch    string
		code    []string
		table   uint64
		entries int
		size    int
		from    uint64 // what an entry is a distance from, or 0 if it is an address
	}{
		{"ppc64el", []string{"63004c3c", "007a4238", "a602087c", "f7ff2339", "5a000928", "98018141", "9dff423d", "88172979", "38864a39", "aa4a2a7d", "1452297d", "a603297d", "2004804e"}, at + 0x38, 91, 4, at + 0x38},
		{"s390x", []string{"e31010000094", "a71afff4", "ec12fcfb037f", "ec111dbc0355", "c02000000100", "e31120000004", "47f12000"}, at + 22 + 0x200, 4, 8, at + 22 + 0x200},
		{"riscv64", []string{"03d72500", "93074002", "63ece700", "ba87", "8a07", "17e7e300", "1307a771", "ba97", "9c43", "ba97", "8287"}, at + 16 + 0xe3e000 + 1818, 37, 4, at + 16 + 0xe3e000 + 1818},
		{"loong64", []string{"8660172a", "0c148002", "86710068", "6c53021a", "8c81ca02", "c6302d00", "cd000026", "8cb51000", "8001004c"}, at + 4763<<12 + 672, 6, 8, at + 4763<<12 + 672},
		{"loong64", []string{"8d400024", "0c8c8002", "8d390068", "8d00812a", "0ce1011a", "8c81d502", "ad312d00", "ad010026", "8cb51000", "8001004c"}, at + 3848<<12 + 1376, 36, 8, at + 3848<<12 + 1376},
		{"i386", []string{"83f805", "7710", "ff248500000020"}, 0x20000000, 6, 4, 0},
		{"armhf", []string{"61c044e2", "3e005ce3", "0cf19f97"}, at + 16, 63, 4, 0},
	} {
		a := insn.For(tt.arch)
		var code []byte
		var starts []uint32
		for _, x := range tt.code {
			starts = append(starts, uint32(len(code)))
			code = append(code, dwarftest.Hex(t, x)...)
		}
		size := uint64(len(code))
		code = append(code, make([]byte, 16*tt.entries+64)...)
		for i := int(size); i < len(code); i += 4 { // what cases are
			if tt.arch == "s390x" {
				copy(code[i:], "\x18\x12\x18\x12") // lr %r1, %r2
			} else {
				copy(code[i:], "\x93\x07\x40\x02")
			}
		}
		order := binary.ByteOrder(binary.LittleEndian)
		if a.BigEndian {
			order = binary.BigEndian
		}
		var want []uint64
		read := func(addr uint64, n int) []byte {
			i := int(addr-tt.table) / tt.size
			if addr < tt.table || n != tt.size || i >= tt.entries {
				return nil
			}
			d, to := make([]byte, 8), uint64(at)+size+uint64(i)*4
			switch n {
			case 4:
				order.PutUint32(d, uint32(to-tt.from))
			default:
				order.PutUint64(d, to-tt.from)
			}
			return d[:n]
		}
		for i := range tt.entries {
			want = append(want, at+size+uint64(i)*4)
		}
		got, ok := jumptable.New(a, &jumptable.Code{Code: insn.Code{Addr: at, Bytes: code}, Starts: starts}, read).Targets(starts[len(starts)-1])
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %d targets %#x, want %d %#x", tt.arch, ok, len(got), got, len(want), want[:2])
		}
	}
}

// FuzzJumpTable: any code gets an answer, with no more targets than a table may have entries.
func FuzzJumpTable(f *testing.F) {
	names := []string{"amd64", "arm64", "armhf", "ppc64el", "riscv64", "s390x", "loong64", "i386"}
	// cmp $5, %edi; ja; mov %edi, %eax; jmp *0x1000(,%rax,8)
	f.Add(uint8(0), dwarftest.Hex(f, "83ff05"+"7709"+"89f8"+"ff24c500100000"))
	// and $7, %edi; lea 0x100(%rip), %rdx; movslq (%rdx,%rdi,4), %rax; add %rdx, %rax; notrack jmp *%rax
	f.Add(uint8(0), dwarftest.Hex(f, "83e707"+"488d1500010000"+"486304ba"+"4801d0"+"3effe0"))
	// cmp w0, #5; b.hi; adrp x1; ldrb w0, [x1, w0, uxtw]; adr x1; add x0, x1, w0, sxtb #2; br x0
	f.Add(uint8(1), dwarftest.Hex(f, "1f140071"+"c8000054"+"01000090"+"20486038"+"61000010"+"2088208b"+"00001fd6"))
	// cmp ip, #62; ldrls pc, [pc, ip, lsl #2]
	f.Add(uint8(2), dwarftest.Hex(f, "3e005ce3"+"0cf19f97"+"10100000"))
	// cmplwi r9, 90; bgt; sldi r9, r9, 2; lwax r9, r10, r9; add r9, r9, r10; mtctr r9; bctr
	f.Add(uint8(3), dwarftest.Hex(f, "5a000928"+"98018141"+"88172979"+"aa4a2a7d"+"1452297d"+"a603297d"+"2004804e"))
	// bltu a5, a4; mv a5, a4; slli a5, a5, 2; auipc a4; add a5, a5, a4; lw a5, 0(a5); jr a5
	f.Add(uint8(4), dwarftest.Hex(f, "63ece700"+"ba87"+"8a07"+"17070000"+"ba97"+"9c43"+"8287"))
	// clijh %r1, 3; risbgz %r1, %r1, 29, 60, 3; larl %r2; lg %r1, 0(%r1,%r2); b 0(%r1,%r2)
	f.Add(uint8(5), dwarftest.Hex(f, "ec12fcfb037f"+"ec111dbc0355"+"c02000000010"+"e31120000004"+"47f12000"))
	// ld.bu a2; addi.w t0, 5; bltu t0, a2; pcalau12i t0; addi.d; alsl.d a2, a2, t0, 3; ldptr.d t1; add.d t0, t0, t1; jr t0
	f.Add(uint8(6), dwarftest.Hex(f, "8660172a"+"0c148002"+"86710068"+"0c00001a"+"8c81c002"+"c6302d00"+"cd000026"+"8cb51000"+"8001004c"))
	// cmp $5, %eax; ja; jmp *0x1010(,%eax,4)
	f.Add(uint8(7), dwarftest.Hex(f, "83f805"+"7710"+"ff248510100000"))
	f.Fuzz(func(t *testing.T, arch uint8, bytes []byte) {
		a := insn.For(names[int(arch)%len(names)])
		code := insn.Code{Addr: 0x1000, Bytes: bytes}
		read := func(addr uint64, n int) []byte {
			if off := addr - code.Addr; off <= uint64(len(bytes)) && uint64(n) <= uint64(len(bytes))-off {
				return bytes[off : off+uint64(n)]
			}
			return nil
		}
		_, tables := follow(t, a, code, read)
		for at, targets := range tables {
			if len(targets) == 0 || len(targets) > 4096 || !slices.IsSorted(targets) {
				t.Errorf("%#x: %d targets", at, len(targets))
			}
		}
	})
}
