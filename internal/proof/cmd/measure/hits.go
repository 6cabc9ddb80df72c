package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/internal/bpfexec"
	"github.com/bpfprologue/bpfprologue/internal/kernelhas"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/loc"
	"github.com/bpfprologue/bpfprologue/prologue"
)

// probed has the probe. Its third argument is a pointer, and it has more arguments than Go
// passes in registers on any machine, so that the last two are on the stack.
//
//go:noinline
func probed(a, b uint64, c *[16]uint64, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r uint64) uint64 {
	return a ^ b ^ c[0] ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ m ^ n ^ o ^ p ^ q ^ r
}

const symbol = "main.probed"

// kind is one kind of program to measure.
type kind struct {
	name string
	args []prologue.Arg
	spec bool // interpret the arguments at each hit
	same int  // index of the kind that must fetch the same values, or itself

	reads prologue.Reads // ReadAuto: of this process
	frame []uint16       // prologue.Options.Frame
}

func reg(n uint16) *loc.Expr { return &loc.Expr{Op: ops.Reg, K: uint64(n)} }

func inRegister(n uint16) prologue.Arg {
	return prologue.Arg{Loc: loc.Location{Kind: loc.KindRegister, Expr: reg(n)}, Size: 8}
}

func inMemory(n uint16, off uint64) prologue.Arg {
	at := &loc.Expr{Op: ops.Add, A: reg(n), B: &loc.Expr{Op: ops.Const, K: off}}
	return prologue.Arg{Loc: loc.Location{Kind: loc.KindMemory, Expr: at}, Size: 8}
}

// first and third are the DWARF numbers of the registers that hold probed's first and third
// argument (Go's internal ABI).
var (
	hitsFirst = map[string]uint16{"amd64": 0, "arm64": 0}
	third     = map[string]uint16{"amd64": 2, "arm64": 2}
)

func kinds(a *arch.Arch) []kind {
	p := third[a.Name]
	registers := []prologue.Arg{inRegister(0), inRegister(p), inRegister(a.SP)}
	near := []prologue.Arg{inMemory(a.SP, 8), inMemory(a.SP, 16)}
	far := []prologue.Arg{inMemory(a.SP, 8), inMemory(a.SP, 80)}
	pointed := []prologue.Arg{inMemory(p, 8), inMemory(p, 16)}
	return []kind{
		{name: "an empty program"},
		{name: "prologue: three registers", args: registers, same: 1},
		{name: "prologue: two neighbouring stack slots", args: near, same: 2},
		{name: "prologue: two stack slots, a helper call each", args: far, same: 3},
		{name: "prologue: two neighbours at a pointer", args: pointed, same: 4},
		{name: "interpreted: three registers", args: registers, spec: true, same: 1},
		{name: "interpreted: two neighbouring stack slots", args: near, spec: true, same: 2},
		{name: "interpreted: two neighbours at a pointer", args: pointed, spec: true, same: 4},
	}
}

// subject is a kind that is loaded.
type subject struct {
	kind
	prog  *ebpf.Program
	times []float64 // nanoseconds per hit, of each round
}

// measureHits hits measures what a fetch prologue costs when its probe fires, by the kernel's
// statistics of programs (the time of each run), at a uprobe on a small function of this
// process: of its memory, and of the kernel's by helpers and by loads. For comparison it measures programs that
// interpret a description of the arguments
// at each hit, as libbpf's do for USDT probes. It prints a table in Markdown.
//
//	hits [-rounds N] [-hits N]
//
// It needs Linux 5.15 and root, or CAP_BPF and CAP_PERFMON. The machine should
// have nothing else to do.
func measureHits() {
	rounds := flag.Int("rounds", 21, "rounds; each measures every program once")
	hits := flag.Int("hits", 5000, "hits of a program in a round")
	flag.Parse()
	if err := hitsRun(*rounds, *hits); err != nil {
		log.Fatal(err)
	}
}

func hitsRun(rounds, hits int) error {
	if err := bpfexec.Available(); err != nil {
		return err
	}
	a := arch.ByName(runtime.GOARCH)
	if a == nil {
		return fmt.Errorf("no table of registers for %s", runtime.GOARCH)
	}
	runtime.LockOSThread()
	// The collector halves stacks of which little is used, and moves them for it: the programs would
	// be called with other addresses then, and fetch other values.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return fmt.Errorf("enabling the kernel's statistics of programs: %w", err)
	}
	defer stats.Close()
	values, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8 * (1 + prologue.MaxArgs), MaxEntries: 1})
	if err != nil {
		return err
	}
	defer values.Close()

	if err := compare(a, kinds(a), 1, values, rounds, hits); err != nil {
		return err
	}
	memory, err := newKernelMemory()
	if err != nil {
		return err
	}
	if memory == nil {
		fmt.Printf("\nReads of kernel memory were not measured: %v.\n", kernelhas.ErrNoCast)
		return nil
	}
	fmt.Printf("\nReads of kernel memory, by helpers and by loads:\n\n")
	err = compare(a, kernelKinds(a), memory.Addr(0), values, rounds, hits)
	return errors.Join(err, memory.Close())
}

// compare measures programs side by side and prints a table. The first argument is probed's.
func compare(a *arch.Arch, kinds []kind, argument uint64, values *ebpf.Map, rounds, hits int) error {
	var err error
	var subjects []*subject
	for _, k := range kinds {
		s := &subject{kind: k}
		if s.prog, err = load(a, k, values); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		defer func() { _ = bpfexec.Close(s.prog) }()
		subjects = append(subjects, s)
	}
	self, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return err
	}
	fetched := make([][]uint64, len(subjects))
	for range rounds {
		for i, s := range subjects {
			if err := s.measure(self, argument, hits); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fetched[i] = make([]uint64, 1+prologue.MaxArgs)
			if err := values.Lookup(uint32(0), fetched[i]); err != nil {
				return err
			}
			n := 1 + len(s.args) // err and arguments
			if s.args != nil && (fetched[i][0] != 0 || !slices.Equal(fetched[i][:n], fetched[s.same][:n])) {
				return fmt.Errorf("%s: fetched %#x, %s fetched %#x", s.name, fetched[i][:n], subjects[s.same].name, fetched[s.same][:n])
			}
		}
	}
	printResults(subjects, rounds, hits)
	return nil
}

// measure lets the probe fire and notes the time of a run.
func (s *subject) measure(self *link.Executable, argument uint64, hits int) error {
	up, err := self.Uprobe(symbol, s.prog, &link.UprobeOptions{PID: unix.Getpid()})
	if err != nil {
		return err
	}
	before, err := s.prog.Stats()
	if err != nil {
		return errors.Join(err, up.Close())
	}
	var memory [16]uint64
	for i := range memory {
		memory[i] = uint64(i) * 0x0101010101010101
	}
	for i := range hits {
		memory[0] = probed(argument, 2, &memory, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18) + uint64(i)
	}
	after, err := s.prog.Stats()
	if err := errors.Join(err, up.Close()); err != nil {
		return err
	}
	n := after.RunCount - before.RunCount
	if n < uint64(hits) {
		return fmt.Errorf("%d hits, %d runs", hits, n)
	}
	s.times = append(s.times, float64((after.Runtime-before.Runtime).Nanoseconds())/float64(n))
	return nil
}

// load loads a program that fetches as a kind says and then stores err and the arguments.
func load(a *arch.Arch, k kind, values *ebpf.Map) (*ebpf.Program, error) {
	var insns asm.Instructions
	switch {
	case k.spec:
		specs, err := newSpecs(a, k.args)
		if err != nil {
			return nil, err
		}
		defer specs.Close()
		insns = interpreter(specs, len(k.args))
	case k.args != nil:
		o := prologue.Options{Arch: a, Reads: k.reads, Frame: k.frame}
		if o.Reads == prologue.ReadAuto {
			o.Reads = prologue.ReadUser
		}
		p, err := prologue.Emit(k.args, o)
		if err != nil {
			return nil, err
		}
		for i, r := range p.Reasons {
			if r.Code != reasons.None {
				return nil, fmt.Errorf("argument %d is not fetched: %v", i, r)
			}
		}
		insns = p.Insns
		if err := kernelhas.Resolve(insns); err != nil {
			return nil, err
		}
	}
	if k.args != nil {
		insns = append(insns, asm.LoadMapValue(asm.R0, values.FD(), 0))
		for i := range 1 + len(k.args) {
			insns = append(insns, asm.StoreMem(asm.R0, int16(8*i), asm.R2+asm.Register(i), asm.DWord))
		}
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return())
	return ebpf.NewProgram(&ebpf.ProgramSpec{Name: "hits", Type: ebpf.Kprobe, License: "GPL", Instructions: insns})
}

func printResults(subjects []*subject, rounds, hits int) {
	fmt.Printf("Medians of %d rounds of %d hits, all programs in each round; nanoseconds of a run by the kernel's statistics, whose own\n", rounds, hits)
	fmt.Printf("cost is in all of them (the empty program's time).\n\n")
	fmt.Println("| program | ns/hit | more than empty | quartiles |")
	fmt.Println("| --- | ---: | ---: | ---: |")
	at := func(s *subject, share float64) float64 { return s.times[int(share*float64(len(s.times)-1)+0.5)] }
	for _, s := range subjects {
		slices.Sort(s.times)
	}
	empty := at(subjects[0], 0.5)
	for _, s := range subjects {
		m := at(s, 0.5)
		fmt.Printf("| %s | %.1f | %.1f | %.1f to %.1f |\n", s.name, m, m-empty, at(s, 0.25), at(s, 0.75))
	}
}
