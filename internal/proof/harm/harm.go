// Package harm runs instructions with and without a uprobe, and compares everything that they change. What a probe changes must be
// refused: package probed says which instructions these are, and this package is its proof.
package harm

import (
	"context"
	"debug/elf"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

//go:embed testdata/runner.c testdata/amd64.h testdata/arm64.h
var runnerSource embed.FS

const (
	slotSize = 64
	codeAt   = 0x50000000 // where the code's file is mapped
)

// What differs by architecture: this runs on the machine whose instructions these are.
var (
	machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	// slots lay an instruction out at an address: the instruction, code that tells where a jump went, and a jump to leave.
	slots  = map[string]func(code []byte, at, leave uint64) []byte{"amd64": slotAMD64, "arm64": slotARM64}
	inSlot = map[string]uint64{"arm64": 4} // where the instruction is in it
)

// State is what a process had after an instruction. Large parts are hashes.
type State struct {
	General               [16]uint64 // in the order of their codes
	Flags, Others         uint64     // others are the base of FS; on arm64 the other registers, with the stack pointer
	Extended, Data, Stack uint64
	Address               uint64 // of a fault, and of the instruction
	Signal, Code          uint32
	Status                uint32 // of the process
	Rounds                uint32
}

// Outcome is what a probe at an instruction did.
type Outcome struct {
	Arch          string // of this machine, amd64 or arm64
	Code          []byte
	Without, With State
	Hits          uint64 // in three rounds
	Undetermined  bool   // two runs without a probe differ
}

// Differs reports whether the probe changed what the instruction does.
func (o *Outcome) Differs() bool { return !o.Undetermined && o.Without != o.With }

// What names what differs.
func (o *Outcome) What() string {
	a, b := &o.Without, &o.With
	switch {
	case a.Signal != b.Signal || a.Status != b.Status:
		return fmt.Sprintf("signal %d, status %#x without; signal %d, status %#x with", a.Signal, a.Status, b.Signal, b.Status)
	case a.General != b.General:
		for i := range a.General {
			if a.General[i] != b.General[i] {
				return fmt.Sprintf("register %d: %#x without, %#x with", i, a.General[i], b.General[i])
			}
		}
	case a.Flags != b.Flags:
		return fmt.Sprintf("flags: %#x without, %#x with", a.Flags, b.Flags)
	case a.Others != b.Others:
		return fmt.Sprintf("the base of FS, or registers from 16 on: %#x without, %#x with", a.Others, b.Others)
	case a.Stack != b.Stack:
		return "stack"
	case a.Data != b.Data:
		return "memory"
	case a.Extended != b.Extended:
		return "vector or x87 registers"
	}
	return fmt.Sprintf("address, code or rounds: %#x %d %d without, %#x %d %d with", a.Address, a.Code, a.Rounds, b.Address, b.Code, b.Rounds)
}

// Runner runs instructions.
type Runner struct {
	dir, path string
	leave     uint64
	hits      *ebpf.Map
	prog      *ebpf.Program
	single    bool
}

// batch is how many instructions run in one process's children: their breakpoints are pages that each fork copies.
const batch = 4096

// Compilers are what Compile compiles with, for each architecture.
var Compilers = map[string]string{"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc-12"}

// Compile compiles the program that runs instructions of an architecture in a directory, and returns its path.
func Compile(dir, arch string) (path string, err error) {
	path = filepath.Join(dir, "runner")
	if err := os.CopyFS(filepath.Join(dir, "source"), runnerSource); err != nil {
		return "", err
	}
	args := []string{"-O1", "-static", "-fno-stack-protector", "-o", path, filepath.Join(dir, "source", "testdata", "runner.c")}
	switch arch {
	case "amd64":
		args = append(args, "-fcf-protection=none")
	case "arm64":
		args = append(args, "-Wl,-Ttext-segment=0x4f000000") // a branch reaches leave
	}
	if out, err := exec.Command(Compilers[arch], args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

// New returns a runner with that program, which works in a directory. With one link for each probe it runs where there is no
// uprobe.multi, but takes longer.
func New(program, dir string, single bool) (*Runner, error) {
	r := &Runner{dir: dir, path: program, single: single}
	f, err := elf.Open(r.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	for i := range symbols {
		if symbols[i].Name == "leave" {
			r.leave = symbols[i].Value
		}
	}
	if r.hits, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: batch}); err != nil {
		return nil, err
	}
	attach := ebpf.AttachTraceUprobeMulti
	if single {
		attach = ebpf.AttachNone
	}
	// hits[cookie]++
	r.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: attach, License: "GPL", Instructions: asm.Instructions{
		asm.FnGetAttachCookie.Call(),
		asm.StoreMem(asm.R10, -4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, r.hits.FD()),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		asm.Return(),
	}})
	if err != nil {
		_ = r.hits.Close()
		return nil, err
	}
	return r, nil
}

// Close frees what the kernel has of it.
func (r *Runner) Close() error { return errors.Join(r.prog.Close(), r.hits.Close()) }

// Run runs each instruction with and without a probe at it. progress, if not nil, is called with how many are done.
func (r *Runner) Run(ctx context.Context, codes [][]byte, progress func(int)) (out []Outcome, err error) {
	for from := 0; from < len(codes); from += batch {
		part := codes[from:min(from+batch, len(codes))]
		some, err := r.batch(ctx, part)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
		if progress != nil {
			progress(len(out))
		}
	}
	return out, nil
}

func (r *Runner) batch(ctx context.Context, codes [][]byte) ([]Outcome, error) {
	path := filepath.Join(r.dir, "code")
	// The first slot is the header of an ELF file without segments: what attaches probes wants one.
	file, err := binary.Append(nil, binary.LittleEndian, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}, Type: uint16(elf.ET_EXEC), Machine: uint16(machines[runtime.GOARCH]),
		Version: uint32(elf.EV_CURRENT), Ehsize: slotSize, Phentsize: 56, Shentsize: slotSize,
	})
	if err != nil {
		return nil, err
	}
	offsets, cookies := make([]uint64, len(codes)), make([]uint64, len(codes))
	for i, code := range codes {
		offsets[i], cookies[i] = uint64(len(file))+inSlot[runtime.GOARCH], uint64(i)
		file = append(file, slots[runtime.GOARCH](code, codeAt+uint64(len(file)), r.leave)...)
	}
	_ = os.Remove(path) // another inode
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return nil, err
	}
	first, err := r.states(ctx, path, len(codes))
	if err != nil {
		return nil, err
	}
	second, err := r.states(ctx, path, len(codes))
	if err != nil {
		return nil, err
	}
	if _, err := r.hits.BatchUpdate(numbers(batch), make([]uint64, batch), nil); err != nil {
		return nil, err
	}
	ex, err := link.OpenExecutable(path)
	if err != nil {
		return nil, err
	}
	detach, err := r.attach(ex, offsets, cookies)
	if err != nil {
		return nil, err
	}
	with, err := r.states(ctx, path, len(codes))
	if err := errors.Join(err, detach()); err != nil {
		return nil, err
	}
	hits := make([]uint64, batch)
	var cursor ebpf.MapBatchCursor
	if _, err := r.hits.BatchLookup(&cursor, make([]uint32, batch), hits, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, err
	}
	out := make([]Outcome, len(codes))
	for i := range out {
		out[i] = Outcome{Arch: runtime.GOARCH, Code: codes[i], Without: first[i], With: with[i], Hits: hits[i], Undetermined: first[i] != second[i]}
	}
	return out, nil
}

// attach attaches the program.
func (r *Runner) attach(ex *link.Executable, offsets, cookies []uint64) (detach func() error, err error) {
	if !r.single {
		l, err := ex.UprobeMulti(nil, r.prog, &link.UprobeMultiOptions{Addresses: offsets, Cookies: cookies})
		if err != nil {
			return nil, err
		}
		return l.Close, nil
	}
	var all []link.Link
	detach = func() error {
		var errs []error
		for _, l := range all {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	}
	for i, at := range offsets {
		l, err := ex.Uprobe("", r.prog, &link.UprobeOptions{Address: at, Cookie: cookies[i]})
		if err != nil {
			return nil, errors.Join(err, detach())
		}
		all = append(all, l)
	}
	return detach, nil
}

func numbers(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

func (r *Runner) states(ctx context.Context, code string, n int) ([]State, error) {
	path := filepath.Join(r.dir, "results")
	_ = os.Remove(path)
	if out, err := exec.CommandContext(ctx, r.path, code, path).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", r.path, err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := make([]State, n)
	if _, err := binary.Decode(data, binary.LittleEndian, out); err != nil {
		return nil, fmt.Errorf("%s: %d bytes for %d states of %d: %w", path, len(data), n, unsafe.Sizeof(out[0]), err)
	}
	return out, nil
}
