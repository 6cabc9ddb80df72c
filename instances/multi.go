package instances

import (
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/bpfprologue/bpfprologue/plan"
)

// attachType is what a program for a kind of link is loaded with.
func attachType(m plan.Multi) ebpf.AttachType {
	switch m {
	case plan.MultiKprobe:
		return ebpf.AttachTraceKprobeMulti
	case plan.MultiUprobe:
		return ebpf.AttachTraceUprobeMulti
	}
	return ebpf.AttachNone
}

// haveKprobeMulti returns the kind of link that the kernel has for many kprobes.
func haveKprobeMulti() plan.Multi {
	if features.HaveBPFLinkKprobeMulti() == nil {
		return plan.MultiKprobe
	}
	return plan.MultiNone
}

// haveUprobeMulti returns the kind of link that the kernel has for many uprobes. It wants
// Linux 6.10: before 46ba0e49b642 ("bpf: fix multi-uprobe PID
// filtering logic") uprobe.multi for one process left out its threads but the first.
func haveUprobeMulti() plan.Multi {
	const linux610 = 6<<16 | 10<<8
	if v, err := features.LinuxVersionCode(); err == nil && v >= linux610 && features.HaveBPFLinkUprobeMulti() == nil {
		return plan.MultiUprobe
	}
	return plan.MultiNone
}

// many makes probes at the addresses by one link.
func (w *attacher) many(points []point, prog *ebpf.Program) (io.Closer, error) {
	addrs, cookies := make([]uint64, len(points)), make([]uint64, len(points))
	for i, p := range points {
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
