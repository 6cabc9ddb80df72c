package tracer

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/bpfprologue/bpfprologue/instances"
	"github.com/bpfprologue/bpfprologue/plan"
)

// OpenSampler makes a session that reports the hits for which programs of an object file return
// something else than 0: give Session.Around to instances.Expand, as instances.Subject.Around, and what
// instances.Collection.Attach returns to Session.Attachments, so that Run can make the probes silent.
// The options PID and Progress do nothing here. The caller must close the session.
func OpenSampler(o Options) (s *Session, err error) {
	s = &Session{}
	defer func() {
		if err != nil {
			_ = s.Close()
			s = nil
		}
	}()
	o.PID = 0
	if s.who, err = s.prepare(nil, &o); err != nil {
		return s, err
	}
	return s, s.read()
}

// Around is instances.Subject.Around for programs whose hits a session of OpenSampler reports. A hit is
// reported after the program, with what it got; the probe then gets 0.
func (s *Session) Around(p *plan.Plan, user *ebpf.ProgramSpec, instance int) (*ebpf.ProgramSpec, error) {
	n, known := s.number(p)
	if !known {
		if n == maxPlans {
			return nil, fmt.Errorf("%d programs: at most %d at a time", n+1, maxPlans)
		}
		s.plans = append(s.plans, p)
	}
	key := samplerKey{user, recordSize(p, &p.Instances[instance])}
	if spec := s.samplers[key]; spec != nil {
		return spec, nil
	}
	before, stack := keepArgs(p.Convention, key.size)
	after := asm.Instructions{asm.JEq.Imm(asm.R0, 0, labelExit)}
	after = append(after, s.who.filter(stack, labelExit)...)
	after = append(after, s.report(p.Image.Arch(), key.size, stack, s.who, asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.FnGetAttachCookie.Call(),
		// The site, and the plan in place of what the dispatch has there.
		asm.LSh.Imm(asm.R0, 32),
		asm.RSh.Imm(asm.R0, 32),
		asm.LoadImm(asm.R1, int64(n)<<32, asm.DWord),
		asm.Or.Reg(asm.R0, asm.R1),
	})...)
	spec, err := instances.Around(p, user, before, after)
	if err != nil {
		return nil, err
	}
	if s.samplers == nil {
		s.samplers = make(map[samplerKey]*ebpf.ProgramSpec)
	}
	s.samplers[key] = spec
	return spec, nil
}

// samplerKey is what Around makes a program for.
type samplerKey struct {
	user *ebpf.ProgramSpec
	size int // bytes of the record
}

// number returns the index of a plan.
func (s *Session) number(p *plan.Plan) (n int, known bool) {
	for i := range s.plans {
		if s.plans[i] == p {
			return i, true
		}
	}
	return len(s.plans), false
}
