package instances

import (
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/bpfprologue/bpfprologue/dwarfloc"
)

// Multi says at which sites of a plan the kernel is asked for many probes at once, by
// one link. A program is loaded for that or for single probes, so an instance's sites
// are of one kind.
type Multi uint8

const (
	// Single is one probe at a time, which all kernels can.
	Single Multi = iota
	// KprobeMulti is kprobe.multi (Linux 5.18 with CONFIG_FPROBE): the entries and
	// returns of kernel functions. ftrace is what calls the program there, and of the
	// registers it saves those that hold arguments and results. Other sites have single
	// probes.
	KprobeMulti
	// UprobeMulti is uprobe.multi (Linux 6.6, here asked for from 6.10 on): all sites of a
	// program or library.
	UprobeMulti
)

// AttachType is what a program for such sites is to be loaded with.
func (m Multi) AttachType() ebpf.AttachType {
	return [...]ebpf.AttachType{ebpf.AttachNone, ebpf.AttachTraceKprobeMulti, ebpf.AttachTraceUprobeMulti}[m]
}

func haveKprobeMulti() Multi {
	if features.HaveBPFLinkKprobeMulti() == nil {
		return KprobeMulti
	}
	return Single
}

// haveUprobeMulti asks for Linux 6.10: before 46ba0e49b642 ("bpf: fix multi-uprobe PID
// filtering logic") uprobe.multi for one process left out its threads but the first.
func haveUprobeMulti() Multi {
	const linux610 = 6<<16 | 10<<8
	if v, err := features.LinuxVersionCode(); err == nil && v >= linux610 && features.HaveBPFLinkUprobeMulti() == nil {
		return UprobeMulti
	}
	return Single
}

// at is how a site of a plan is probed when the kernel can do what m says.
func (m Multi) at(s *Site, isReturn bool) Multi {
	if m == KprobeMulti && !ftraceServes(s, isReturn) {
		return Single
	}
	return m
}

// ftraceServes reports whether ftrace calls programs where a site is, and saves all the
// registers that its arguments need.
func ftraceServes(s *Site, isReturn bool) bool {
	if s.Kind != dwarfloc.Entry || s.Offset != 0 || s.Symbol == "" || s.AfterPrologue {
		return false
	}
	a := s.Image().Arch()
	serves := true
	for i := range s.Args {
		s.Args[i].Variable.Loc.Exprs(func(e *dwarfloc.Expr) {
			e.Walk(func(e *dwarfloc.Expr) {
				if e.Op == dwarfloc.OpReg && !a.FtraceSaves(uint16(e.K), isReturn) {
					serves = false
				}
			})
		})
	}
	return serves
}

// many makes probes at the addresses by one link.
func (w *attacher) many(places []place, prog *ebpf.Program) (io.Closer, error) {
	addrs, cookies := make([]uint64, len(places)), make([]uint64, len(places))
	for i, p := range places {
		addrs[i], cookies[i] = p.addr, p.cookie
	}
	isReturn := w.plan.Definition.Point.Return
	if w.r.pmu == "kprobe" {
		o := link.KprobeMultiOptions{Cookies: cookies}
		for _, a := range addrs {
			o.Addresses = append(o.Addresses, uintptr(a))
		}
		if isReturn {
			return link.KretprobeMulti(prog, o)
		}
		return link.KprobeMulti(prog, o)
	}
	file, err := link.OpenExecutable(w.r.path)
	if err != nil {
		return nil, err
	}
	o := &link.UprobeMultiOptions{Addresses: addrs, Cookies: cookies, PID: uint32(w.o.PID)}
	if isReturn {
		return file.UretprobeMulti(nil, prog, o)
	}
	return file.UprobeMulti(nil, prog, o)
}
