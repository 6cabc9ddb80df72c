package oracle

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Listing is machine code as a disassembler prints it.
type Listing struct {
	insns []printed // by address
	names []symbol  // functions, by address
	sides []side    // where execution may also go on, by address
	warns map[uint64]bool
	arm   bool
}

// printed is an instruction.
type printed struct {
	addr, target uint64 // target of a direct jump or call, or 0
	does         does
}

type does uint8

const (
	goesOn does = iota
	branches
	jumps
	calls
	traps
	ends
	wanders // an indirect jump
	idles   // does nothing
)

type symbol struct {
	addr uint64
	name string
}

type side struct{ from, to uint64 }

// neverReturn are functions that do not return and may not say so in the debug information
// (tools/objtool/noreturns.h).
var neverReturn = map[string]bool{
	"__stack_chk_fail": true, "panic": true, "nmi_panic": true, "do_exit": true, "make_task_dead": true, "do_group_exit": true,
	"__module_put_and_kthread_exit": true, "kthread_exit": true, "kthread_complete_and_exit": true, "machine_real_restart": true,
	"rewind_stack_and_make_dead": true, "rewind_stack_do_exit": true, "usercopy_abort": true, "fortify_panic": true, "__fortify_panic": true, "stop_this_cpu": true,
	"cpu_startup_entry": true, "rest_init": true, "start_kernel": true, "x86_64_start_kernel": true, "x86_64_start_reservations": true,
	"__ubsan_handle_builtin_unreachable": true, "snp_abort": true, "sev_es_terminate": true, "ex_handler_msr_mce": true,
	"cpu_bringup_and_idle": true, "xen_cpu_bringup_again": true, "xen_start_kernel": true, "__reiserfs_panic": true, "lbug_with_loc": true,
	"hv_ghcb_terminate": true, "emergency_restart": false, "arch_cpu_idle_dead": true, "play_dead": true, "acpi_processor_ffh_play_dead": true,
	"cpu_die": true, "die": false, "__noreturn_call_on_stack": true, "bad_mode": true, "sched_die": true, "machine_halt": false, "do_task_dead": true,
	"btrfs_assertfail": true, "assfail": true, "syscall_return_via_sysret": true, "__hyp_do_panic": true, "__kvm_nvhe___hyp_do_panic": true,
}

// ReadListing disassembles ranges of a file with objdump, or for arm64 with llvm-objdump, and
// reads what a kernel lists of its code: static branches, faults and traps.
func ReadListing(path, dir string, ranges [][2]uint64) (*Listing, error) {
	e, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	l := &Listing{arm: e.Machine == elf.EM_AARCH64, warns: make(map[uint64]bool)}
	if err := l.disassemble(e, dir, ranges); err != nil {
		return nil, err
	}
	symbols, err := e.Symbols()
	if err != nil {
		return nil, err
	}
	at := make(map[string]uint64)
	for _, s := range symbols {
		at[s.Name] = s.Value
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC || strings.HasPrefix(s.Name, "__x86_") {
			l.names = append(l.names, symbol{s.Value, s.Name})
		}
	}
	slices.SortStableFunc(l.names, func(a, b symbol) int { return int(min(1, max(-1, int64(a.addr-b.addr)))) })
	return l, l.tables(e, at)
}

// disassemble puts the ranges into one file and reads what the disassembler prints of it.
func (l *Listing) disassemble(e *elf.File, dir string, ranges [][2]uint64) error {
	var text []byte
	type piece struct {
		off uint64
		r   [2]uint64
	}
	var pieces []piece
	for _, r := range ranges {
		b, err := bytesAt(e, r[0], r[1])
		if err != nil {
			return err
		}
		for len(text)%16 != 0 {
			text = append(text, 0)
		}
		pieces = append(pieces, piece{uint64(len(text)), r})
		text = append(text, b...)
		text = append(text, make([]byte, 16)...) // what is cut short is not read on into the next
	}
	file := filepath.Join(dir, "code")
	if err := os.WriteFile(file, container(e.Machine, text), 0o600); err != nil {
		return err
	}
	tool := "objdump"
	if l.arm {
		tool = "llvm-objdump"
	}
	cmd := exec.Command(tool, "-d", "-z", "--no-show-raw-insn", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return err
	}
	i := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, rest, ok := strings.Cut(lines.Text(), ":")
		off, err := strconv.ParseUint(strings.TrimSpace(number), 16, 64)
		if !ok || err != nil {
			continue
		}
		for i+1 < len(pieces) && off >= pieces[i+1].off {
			i++
		}
		p := &pieces[i]
		if len(pieces) == 0 || off < p.off || off-p.off >= p.r[1]-p.r[0] {
			continue
		}
		in := l.parse(strings.TrimSpace(rest))
		in.addr = off - p.off + p.r[0]
		if in.target != 0 {
			in.target += p.r[0] - p.off
		}
		l.insns = append(l.insns, in)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", tool, err, errs.String())
	}
	slices.SortFunc(l.insns, func(a, b printed) int { return int(min(1, max(-1, int64(a.addr-b.addr)))) })
	return nil
}

// bytesAt returns the file's bytes for an address range.
func bytesAt(e *elf.File, lo, hi uint64) ([]byte, error) {
	for _, s := range e.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS && lo >= s.Addr && hi <= s.Addr+s.Size {
			b := make([]byte, hi-lo)
			_, err := s.ReadAt(b, int64(lo-s.Addr))
			return b, err
		}
	}
	return nil, fmt.Errorf("oracle: no section has %#x to %#x", lo, hi)
}

// container returns a relocatable file with one section of instructions.
func container(m elf.Machine, text []byte) []byte {
	names := "\x00.text\x00.shstrtab\x00"
	const header, section = 64, 64
	textAt := uint64(header)
	namesAt := textAt + uint64(len(text))
	tableAt := (namesAt + uint64(len(names)) + 15) &^ 15
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_REL), Machine: uint16(m), Version: 1,
		Shoff: tableAt, Ehsize: header, Shentsize: section, Shnum: 3, Shstrndx: 2,
	})
	b.Write(text)
	b.WriteString(names)
	b.Write(make([]byte, tableAt-uint64(b.Len())))
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR), Off: textAt, Size: uint64(len(text)), Addralign: 16})
	put(elf.Section64{Name: 7, Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names)), Addralign: 1})
	return b.Bytes()
}

// parse reads an instruction as it is printed.
func (l *Listing) parse(text string) (in printed) {
	words := strings.Fields(text)
	for len(words) > 1 && prefixes[words[0]] {
		words = words[1:]
	}
	if len(words) == 0 {
		return in
	}
	op := strings.TrimSuffix(words[0], ",pt")
	op = strings.TrimSuffix(op, ",pn")
	var operand string
	if len(words) > 1 {
		operand = words[1]
	}
	direct := func(w string) uint64 {
		v, err := strconv.ParseUint(strings.TrimPrefix(w, "0x"), 16, 64)
		if err != nil {
			return 0
		}
		if v == 0 {
			return 1 << 63 // the section's beginning, which only a jump out of a piece could mean
		}
		return v
	}
	if l.arm {
		switch {
		case op == "b":
			in.does, in.target = jumps, direct(operand)
		case op == "bl", op == "blr":
			in.does, in.target = calls, direct(operand)
		case op == "br":
			in.does = wanders
		case strings.HasPrefix(op, "ret"), op == "eret":
			in.does = ends
		case strings.HasPrefix(op, "b.") || op == "cbz" || op == "cbnz" || op == "tbz" || op == "tbnz":
			in.does = branches
			for _, w := range words[1:] {
				if strings.HasPrefix(w, "0x") {
					in.target = direct(w)
				}
			}
		case op == "brk", op == "udf":
			in.does = traps
		case op == "nop":
			in.does = idles
		}
		return in
	}
	switch {
	case strings.HasPrefix(op, "jmp"):
		if in.does = jumps; strings.HasPrefix(operand, "*") {
			in.does = wanders
		} else {
			in.target = direct(operand)
		}
	case strings.HasPrefix(op, "j"), strings.HasPrefix(op, "loop"), op == "xbegin":
		in.does, in.target = branches, direct(operand)
	case strings.HasPrefix(op, "call"):
		in.does = calls
		if !strings.HasPrefix(operand, "*") {
			in.target = direct(operand)
		}
	case strings.HasPrefix(op, "ret"), strings.HasPrefix(op, "iret"), strings.HasPrefix(op, "sysret"):
		in.does = ends
	case strings.HasPrefix(op, "ud"):
		in.does = traps
	case strings.HasPrefix(op, "nop"), op == "xchg" && operand == "%ax,%ax", op == "data16":
		in.does = idles
	}
	return in
}

var prefixes = map[string]bool{
	"notrack": true, "bnd": true, "repz": true, "rep": true, "repnz": true, "lock": true, "cs": true, "ds": true, "es": true, "ss": true, "data16": true,
}

// tables reads a kernel's tables of places in its code: __jump_table (include/linux/jump_label.h),
// __ex_table (arch/*/include/asm/extable.h) and __bug_table (include/asm-generic/bug.h).
func (l *Listing) tables(e *elf.File, at map[string]uint64) error {
	between := func(first, last string) ([]byte, uint64, error) {
		lo, hi := at[first], at[last]
		if lo == 0 || hi <= lo {
			return nil, 0, nil
		}
		b, err := bytesAt(e, lo, hi)
		return b, lo, err
	}
	number := func(b []byte, base uint64, off int) uint64 {
		return base + uint64(off) + uint64(int64(int32(binary.LittleEndian.Uint32(b[off:]))))
	}
	b, base, err := between("__start___jump_table", "__stop___jump_table")
	if err != nil {
		return err
	}
	for i := 0; i+16 <= len(b); i += 16 {
		l.sides = append(l.sides, side{number(b, base, i), number(b, base, i+4)})
	}
	if b, base, err = between("__start___ex_table", "__stop___ex_table"); err != nil {
		return err
	}
	for i := 0; i+12 <= len(b); i += 12 { // with type and data on both architectures, since 5.16
		l.sides = append(l.sides, side{number(b, base, i), number(b, base, i+4)})
	}
	if b, base, err = between("__start___bug_table", "__stop___bug_table"); err != nil {
		return err
	}
	// The flags are at the end of an entry. amd64's has had a message too, and 16 bytes, by Linux 7.2.
	for _, size := range []int{12, 16} {
		traps, code := make(map[uint64]bool), true
		for i := 0; i+size <= len(b) && code; i += size {
			addr := number(b, base, i)
			code = executable(e, addr)
			if binary.LittleEndian.Uint16(b[i+size-2:])&1 != 0 { // BUGFLAG_WARNING
				traps[addr] = true
			}
		}
		if code {
			l.warns = traps
			break
		}
	}
	if err := l.alternatives(e, at); err != nil {
		return err
	}
	slices.SortFunc(l.sides, func(a, b side) int { return int(min(1, max(-1, int64(a.from-b.from)))) })
	return nil
}

// executable reports whether an address is in a section of instructions.
func executable(e *elf.File, addr uint64) bool {
	return slices.ContainsFunc(e.Sections, func(s *elf.Section) bool {
		return s.Flags&elf.SHF_EXECINSTR != 0 && addr >= s.Addr && addr < s.Addr+s.Size
	})
}

// alternatives reads the jumps that a kernel may put in place of instructions: __alt_instructions
// (arch/*/include/asm/alternative.h).
func (l *Listing) alternatives(e *elf.File, at map[string]uint64) error {
	lo, hi := at["__alt_instructions"], at["__alt_instructions_end"]
	if lo == 0 || hi <= lo {
		return nil
	}
	b, err := bytesAt(e, lo, hi)
	if err != nil {
		return err
	}
	// The lengths are at the end of an entry. amd64's has 14 bytes since 6.3.
	for _, size := range []int{12, 14} {
		var sides []side
		good := len(b)%size == 0
		for i := 0; good && i+size <= len(b); i += size {
			addr := lo + uint64(i)
			from := addr + uint64(int64(int32(binary.LittleEndian.Uint32(b[i:]))))
			other := addr + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(b[i+4:]))))
			n := uint64(b[i+size-1])
			good = executable(e, from)
			made := l.arm && b[i+9]&0x80 != 0 // by a function (ARM64_CB_BIT)
			if n == 0 || !good || made {
				continue
			}
			code, err := bytesAt(e, other, other+n)
			if err != nil {
				continue
			}
			for k := 0; l.arm && k+4 <= len(code); k += 4 {
				if w := binary.LittleEndian.Uint32(code[k:]); w>>26 == 5 { // B
					sides = append(sides, side{from + uint64(k), other + uint64(k) + uint64(int64(int32(w<<6)>>4))})
				}
			}
			if !l.arm && len(code) == 5 && code[0] == 0xe9 {
				sides = append(sides, side{from, other + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:]))))})
			}
		}
		if good {
			l.sides = append(l.sides, sides...)
			return nil
		}
	}
	return fmt.Errorf("oracle: __alt_instructions has entries of an unknown size")
}

func (l *Listing) nameAt(addr uint64) []string {
	var out []string
	for i := sort.Search(len(l.names), func(i int) bool { return l.names[i].addr >= addr }); i < len(l.names) && l.names[i].addr == addr; i++ {
		out = append(out, l.names[i].name)
	}
	return out
}
