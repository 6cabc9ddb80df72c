package harm

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/glob"
	"github.com/bpfprologue/bpfprologue/internal/flow"
	"github.com/bpfprologue/bpfprologue/internal/inside"
	"github.com/bpfprologue/bpfprologue/internal/insn"
)

// Program is a program whose output depends on its arguments and standard input alone.
type Program struct {
	Path, Input string
	Args, Env   []string
}

// Probed is what came of probes at all instructions of a program.
type Probed struct {
	Functions, Instructions int
	Refused                 map[string]int // by reason
	Hits                    uint64
	// Wrong has the addresses at which a probe changes what the program prints, or its exit status.
	Wrong []uint64
	// How says what was printed, of the first one.
	How string
}

// output is all that is seen of a run.
func (p *Program) output(ctx context.Context) (string, error) {
	c := exec.CommandContext(ctx, p.Path, p.Args...)
	c.Stdin = strings.NewReader(p.Input)
	c.Env = append(os.Environ(), p.Env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return fmt.Sprintf("%s\n%v", out.Bytes(), c.ProcessState), ctx.Err()
}

// addresses returns the instructions of all functions of an image that have debug information, at which the library would allow a
// probe, and counts the others.
func (p *Probed) addresses(img *dwarfloc.Image) (at []uint64, err error) {
	p.Refused = make(map[string]int)
	file, err := elf.Open(img.Path())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	functions := make(map[uint64]*dwarfloc.Site) // by address
	var mu sync.Mutex
	all, err := glob.ParseFilter("*")
	if err != nil {
		return nil, err
	}
	err = img.EachSite(context.Background(), all, func(_ int, r dwarfloc.SiteRef) error {
		if r.Kind != dwarfloc.SiteEntry {
			return nil
		}
		s, err := r.Site()
		if err == nil && !s.AfterPrologue {
			mu.Lock()
			defer mu.Unlock()
			functions[s.Addr] = s
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	arch := insn.For(img.Arch().Name)
	for i := range symbols {
		sym := &symbols[i]
		f := functions[sym.Value]
		if f == nil || sym.Size == 0 || elf.ST_TYPE(sym.Info) != elf.STT_FUNC {
			continue
		}
		delete(functions, sym.Value)
		code := make([]byte, sym.Size)
		section := file.Sections[sym.Section]
		if _, err := section.ReadAt(code, int64(sym.Value-section.Addr)); err != nil {
			return nil, err
		}
		p.Functions++
		reading := flow.Read(arch, code)
		reading.From(0)
		var sites []*dwarfloc.Site
		for off := range code {
			if is, from, _ := reading.At(off); reading.Known(off) && is == flow.Begins && from == off {
				s := *f
				s.Addr, s.Offset = sym.Value+uint64(off), uint64(off)
				sites = append(sites, &s)
			}
		}
		problems, err := inside.CheckInstructions(img, sites)
		if err != nil {
			return nil, err
		}
		for i, s := range sites {
			p.Instructions++
			if problem := problems[i]; problem != nil {
				why := problem.Error()
				p.Refused[why[strings.LastIndex(why, ": ")+2:]]++
				continue
			}
			at = append(at, s.Addr)
		}
	}
	return at, nil
}

// Probe runs a program with probes at all its instructions at once, and looks for those that change its output if that differs.
func (p *Program) Probe(ctx context.Context, img *dwarfloc.Image) (out Probed, err error) {
	want, err := p.output(ctx)
	if err != nil {
		return out, err
	}
	again, err := p.output(ctx)
	if err != nil || again != want {
		return out, fmt.Errorf("two runs differ: %w", err)
	}
	at, err := out.addresses(img)
	if err != nil {
		return out, err
	}
	hits, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return out, err
	}
	defer hits.Close()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R2, hits.FD(), 0),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R2, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	if err != nil {
		return out, err
	}
	defer prog.Close()
	ex, err := link.OpenExecutable(p.Path)
	if err != nil {
		return out, err
	}
	file, err := elf.Open(p.Path)
	if err != nil {
		return out, err
	}
	defer file.Close()
	text := file.Section(".text")
	same := func(at []uint64) (bool, error) {
		offsets := make([]uint64, len(at))
		for i, addr := range at {
			offsets[i] = addr - text.Addr + text.Offset
		}
		l, err := ex.UprobeMulti(nil, prog, &link.UprobeMultiOptions{Addresses: offsets})
		if err != nil {
			return false, err
		}
		got, err := p.output(ctx)
		if err := errors.Join(err, l.Close()); err != nil {
			return false, err
		}
		if got != want && out.How == "" {
			out.How = got[max(0, len(got)-300):]
		}
		return got == want, nil
	}
	out.Wrong, err = culprits(at, same, 8)
	if err != nil {
		return out, err
	}
	var zero uint32
	return out, hits.Lookup(&zero, &out.Hits)
}

// culprits returns some of the addresses that make a run differ, at most limit.
func culprits(at []uint64, same func([]uint64) (bool, error), limit int) ([]uint64, error) {
	if ok, err := same(at); ok || err != nil || len(at) == 0 {
		return nil, err
	}
	if len(at) == 1 {
		return at, nil
	}
	var out []uint64
	for _, half := range [][]uint64{at[:len(at)/2], at[len(at)/2:]} {
		if len(out) < limit {
			some, err := culprits(half, same, limit-len(out))
			if err != nil {
				return nil, err
			}
			out = append(out, some...)
		}
	}
	return out, nil
}
