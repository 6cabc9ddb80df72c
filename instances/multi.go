package instances

import (
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/bpfprologue/bpfprologue/plan"
)

// attachType returns what an instance's program is loaded with: the kernel attaches it by
// links of that kind only.
func attachType(p *plan.Plan, in *plan.Instance) ebpf.AttachType {
	switch {
	case in.Multi && p.Target.KprobeMulti:
		return ebpf.AttachTraceKprobeMulti
	case in.Multi:
		return ebpf.AttachTraceUprobeMulti
	}
	return ebpf.AttachNone
}

// haveKprobeMulti reports whether the kernel has links for many kprobes.
func haveKprobeMulti() bool { return features.HaveBPFLinkKprobeMulti() == nil }

// haveUprobeMulti reports whether the kernel has links for many uprobes that work. It asks
// for Linux 6.10: before 46ba0e49b642 ("bpf: fix multi-uprobe PID filtering logic")
// uprobe.multi for one process missed all its threads but the first.
func haveUprobeMulti() bool {
	const linux610 = 6<<16 | 10<<8
	v, err := features.LinuxVersionCode()
	return err == nil && v >= linux610 && features.HaveBPFLinkUprobeMulti() == nil
}

// many attaches a program at many points by one link.
func (w *attacher) many(points []point, prog *ebpf.Program) (io.Closer, error) {
	addrs, cookies, counters := make([]uint64, len(points)), make([]uint64, len(points)), make([]uint64, len(points))
	counted := false
	for i, p := range points {
		addrs[i], cookies[i], counters[i] = p.addr, p.cookie, p.counter
		counted = counted || p.counter != 0
	}
	isReturn := points[0].isReturn // all are of one instance
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
	file, err := link.OpenExecutable(w.path)
	if err != nil {
		return nil, err
	}
	o := &link.UprobeMultiOptions{Addresses: addrs, Cookies: cookies, PID: uint32(w.o.PID)}
	if counted {
		o.RefCtrOffsets = counters
	}
	if isReturn {
		return file.UretprobeMulti(nil, prog, o)
	}
	return file.UprobeMulti(nil, prog, o)
}
