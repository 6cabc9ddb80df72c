package peers

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bpfprologue/bpfprologue/arch"
	"github.com/bpfprologue/bpfprologue/dwarfloc"
	"github.com/bpfprologue/bpfprologue/internal/ops"
	"github.com/bpfprologue/bpfprologue/internal/reasons"
	"github.com/bpfprologue/bpfprologue/internal/rule"
	"github.com/bpfprologue/bpfprologue/loc"
)

// place is a location in a form that all tools' answers are converted to: the value
// base+off, or what is in memory there. A base is a register, "@" for an address of the
// image, "" for a constant, or "frame" for the frame base, which these tools do not resolve.
type place struct {
	memory bool
	base   string
	off    int64
}

func (p place) String() string {
	if p.memory {
		return fmt.Sprintf("[%s%+d]", p.base, p.off)
	}
	return fmt.Sprintf("%s%+d", p.base, p.off)
}

// ours returns the place of a variable. ok is false if it is not in a single place.
func ours(a *arch.Arch, v *dwarfloc.Variable) (p place, ok bool) {
	switch v.Loc.Kind {
	case loc.KindRegister, loc.KindValue, loc.KindConstant:
	case loc.KindMemory:
		p.memory = true
	default:
		return p, false
	}
	e := v.Loc.Expr
	if e.Op == ops.Add && e.B.Op == ops.Const {
		p.off = int64(e.B.K)
		e = e.A
	}
	switch e.Op {
	case ops.Reg:
		p.base = strings.TrimPrefix(a.RegisterName(e.K), "%")
	case ops.Addr:
		p.base, p.off = "@", p.off+int64(e.K)
	case ops.Const:
		p.off += int64(e.K)
	default:
		return p, false
	}
	return p, true
}

// same compares a place of ours with a tool's. Constants are as wide as the
// variable: 0xffffffff and -1 are one int.
func same(v *dwarfloc.Variable, p, theirs place) bool {
	if theirs.base == "frame" {
		return p.memory == theirs.memory && p.base != "" && p.base != "@"
	}
	if p.base == "" && theirs.base == "" && p.memory == theirs.memory {
		if size, err := v.Type.ByteSize(); err == nil && size > 0 && size < 8 {
			shift := 64 - 8*uint(size)
			return p.off<<shift == theirs.off<<shift
		}
	}
	return p == theirs
}

var (
	registerName = regexp.MustCompile(`[a-z][a-z0-9]*`)
	number       = regexp.MustCompile(`[-+]?(0x[0-9a-f]+|[0-9]+)`)
)

// expression converts a DWARF expression, as a list of operations that some tool printed, to
// a place. Operations are "DW_OP_breg4 RSI+16" (llvm-dwarfdump),
// "DW_OP_breg4 16 [$rsi]" (gdb), "DW_OP_breg4 (rsi): 16" (readelf). The register's
// name is the tool's. ok is false for all but the simplest expressions.
func expression(operations []string) (p place, ok bool) {
	for i, text := range operations {
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "DW_OP_"), " ")
		name, rest = strings.TrimSuffix(name, ":"), strings.ToLower(rest)
		stem := strings.TrimRight(name, "0123456789")
		if i > 0 {
			// It means the value itself, after anything but a register.
			if i == 1 && name == "stack_value" && len(operations) == 2 && p.memory {
				p.memory = false
				continue
			}
			return p, false
		}
		p.memory = true
		switch stem {
		case "reg":
			p.memory, p.base = false, registerName.FindString(rest)
			ok = p.base != ""
		case "breg":
			p.base = registerName.FindString(rest)
			p.off, ok = integer(strings.Replace(rest, p.base, "", 1))
			ok = ok && p.base != ""
		case "fbreg":
			p.base, ok = "frame", true
		case "addr":
			p.base = "@"
			u, err := strconv.ParseUint(strings.TrimPrefix(rest, "0x"), 16, 64)
			p.off, ok = int64(u), err == nil
		case "lit":
			p.off, ok = integer(name[len("lit"):])
			ok = ok && len(operations) == 2
		case "constu", "consts":
			p.off, ok = integer(rest)
			ok = ok && len(operations) == 2
		default:
			if constN.MatchString(name) {
				p.off, ok = integer(rest)
				ok = ok && len(operations) == 2
			}
		}
		if !ok {
			return p, false
		}
	}
	return p, ok
}

var constN = regexp.MustCompile(`^const[1248][us]$`)

func integer(text string) (int64, bool) {
	text = number.FindString(text)
	if v, err := strconv.ParseInt(text, 0, 64); err == nil {
		return v, true
	}
	u, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 0, 64)
	return int64(u), err == nil
}

// entry is one entry of a location list as a tool printed it.
type entry struct {
	lo, hi     uint64
	vlo, vhi   uint64 // views, from the one tool that prints them
	operations []string
}

// byAddress returns the entry that covers an address, and how many entries touch it, with
// ends and empty entries included.
func byAddress(list []entry, addr uint64) (covering *entry, touching int) {
	for i := range list {
		e := &list[i]
		if e.lo <= addr && addr <= e.hi {
			touching++
			if addr < e.hi && covering == nil {
				covering = e
			}
		}
	}
	return covering, touching
}

// hex reads a hexadecimal number that a pattern matched, with or without 0x.
func hex(text string) uint64 {
	v, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		panic(err) // the pattern matches more than 16 digits
	}
	return v
}

// seed makes a sample, and so a failure, repeatable.
const seed = 20150715

// sample returns n functions of an image, always the same.
func sample(t *testing.T, img *dwarfloc.Image, n int) []string {
	t.Helper()
	names, err := img.FunctionNames(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(n, len(names))]
}

// enough fails a test that compared too little.
func enough(t *testing.T, what string, n, least int) {
	t.Helper()
	t.Logf("%d %s compared", n, what)
	if n < least {
		t.Errorf("only %d %s were compared, want at least %d", n, what, least)
	}
}

// collect returns the sites of an image that a test wants, in the order of their
// descriptions.
func collect(t *testing.T, img *dwarfloc.Image, wanted func(dwarfloc.SiteRef) bool) []*dwarfloc.Site {
	t.Helper()
	var mu sync.Mutex
	var sites []*dwarfloc.Site
	err := img.EachSite(context.Background(), nil, func(_ int, r dwarfloc.SiteRef) error {
		if wanted(r) {
			c, err := r.Site()
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			sites = append(sites, c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(sites, func(a, b *dwarfloc.Site) int { return cmp.Compare(a.DIE, b.DIE) })
	return sites
}

// compare compares a parameter at a site with a tool's answer. It returns false if there is
// nothing to compare.
func compare(t *testing.T, tool string, s *dwarfloc.Site, v *dwarfloc.Variable, theirs place) bool {
	t.Helper()
	a := s.Image.Arch()
	if v.Reason.Code == reasons.NotAtSite && s.Kind == dwarfloc.SiteEntry && theirs.memory && (theirs.base == "frame" || theirs.base == "rsp") {
		// All these tools accept an expression relative to the stack pointer (clang's frame
		// base) at a function's first instruction, although the function's prologue has not
		// moved the stack pointer yet.
		return false
	}
	if v.Loc.Rule == rule.ABI || v.Loc.Rule >= rule.Caller || v.Reason.Code == reasons.Contradictory || v.Reason.Code == reasons.Reassigned {
		return false // the debug information is in doubt, and all these tools follow it
	}
	if v.Reason.Code == reasons.VectorRegister && strings.HasPrefix(theirs.base, "xmm") && !theirs.memory {
		return true
	}
	got, ok := ours(a, v)
	if !v.Located() || !ok || !same(v, got, theirs) {
		t.Errorf("%s at %#x: %s is %s (%s, %q), %s says %s", s, s.Addr, v.Name, v.Loc.Text(a), v.Loc.Rule, v.Reason, tool, theirs)
	}
	return true
}
