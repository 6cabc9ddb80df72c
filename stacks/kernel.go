package stacks

import (
	"bufio"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/bpfprologue/bpfprologue/internal/radix"
)

// kernelSymbol is a line of /proc/kallsyms.
type kernelSymbol struct {
	addr         uint64
	name, module string
}

// kernelFrames returns the frames of an address in the kernel.
func (n *Names) kernelFrames(addr uint64, after bool) []Frame {
	if link := addr - n.o.Slide; n.kernel != nil && n.kernel.holds(link) {
		out := n.kernel.framesIn(addr, link, after, nil)
		for i := range out {
			out[i].Object = "[kernel]"
		}
		return out
	}
	if !n.asked {
		n.asked = true
		if f, err := os.Open("/proc/kallsyms"); err == nil {
			n.symbols = readSymbols(f)
			_ = f.Close()
		}
	}
	of := addr
	if after {
		of--
	}
	i := sort.Search(len(n.symbols), func(i int) bool { return n.symbols[i].addr > of })
	if i == 0 {
		return []Frame{{Addr: addr, Object: "[kernel]"}}
	}
	s := n.symbols[i-1]
	f := Frame{Addr: addr, Function: s.name, Offset: addr - s.addr, Object: "[kernel]"}
	if s.module != "" {
		f.Object = "[" + s.module + "]"
	}
	return []Frame{f}
}

// readSymbols reads the symbols of code in /proc/kallsyms, sorted by address. Addresses that are hidden
// from this process are 0, and left out.
func readSymbols(r io.Reader) (out []kernelSymbol) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.Contains("tTwW", fields[1]) {
			continue
		}
		addr, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil || addr == 0 {
			continue
		}
		s := kernelSymbol{addr: addr, name: fields[2]}
		if len(fields) > 3 {
			s.module = strings.Trim(fields[3], "[]")
		}
		out = append(out, s)
	}
	return radix.Sort(out, func(s *kernelSymbol) uint64 { return s.addr })
}
