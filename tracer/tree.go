package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/bpfprologue/bpfprologue/internal/btf"
	"github.com/bpfprologue/bpfprologue/internal/kernelerr"
)

// A program finds out whether the current process descends from another one by going up from parent to
// parent when it is hit. There is no list of processes, so nothing has to follow forks and no child can be
// missed; it needs neither control groups nor tracefs, so it works in containers. A process whose parent
// has ended is the child of the nearest subreaper (PR_SET_CHILD_SUBREAPER), or else of its namespace's
// first process.

// ErrNoTree is the error for Options.Descendants where the kernel does not say what a process looks like: it
// has no BTF.
var ErrNoTree = errors.New("the kernel has no BTF, which says where a process has its parent")

// tree is the processes that descend from one, as programs see it.
type tree struct {
	root         uint32 // its ID in the initial PID namespace
	parent, tgid int32  // where struct task_struct has them, in bytes
}

// maxAncestors is how many parents are looked at.
const maxAncestors = 32

// findTree finds the process with an ID in this process's namespace, and how to go up to it.
func findTree(pid int) (*tree, error) {
	t := new(tree)
	var err error
	if t.root, err = initialID(pid); err != nil {
		return nil, err
	}
	data, release, err := kernelTypes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTree, err)
	}
	defer release()
	kernel, err := btf.New(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTree, kernelBTF, err)
	}
	var task btf.Type
	err = kernel.Each(func(t *btf.Type) bool {
		if t.Kind == btf.KindStruct && t.Named("task_struct") {
			task = *t
		}
		return task.ID == 0
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTree, kernelBTF, err)
	}
	for name, at := range map[string]*int32{"real_parent": &t.parent, "tgid": &t.tgid} {
		off, ok, err := memberOffset(kernel, &task, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrNoTree, kernelBTF, err)
		}
		if !ok {
			return nil, fmt.Errorf("%w: no %s in struct task_struct", ErrNoTree, name)
		}
		*at = int32(off)
	}
	return t, nil
}

// kernelBTF has the running kernel's types.
const kernelBTF = "/sys/kernel/btf/vmlinux"

// kernelTypes returns what kernelBTF has, until release is called. It can be mapped since Linux 6.16, and privately alone
// (btf_sysfs_vmlinux_mmap in kernel/bpf/sysfs_btf.c).
func kernelTypes() (data []byte, release func(), err error) {
	f, err := os.Open(kernelBTF)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE); err == nil {
		return data, func() { _ = unix.Munmap(data) }, nil
	}
	data, err = io.ReadAll(f)
	return data, func() {}, err
}

// memberOffset returns the offset in bytes of a structure's member, which may be in an anonymous structure.
func memberOffset(kernel *btf.Types, of *btf.Type, name string) (off uint32, ok bool, err error) {
	for i := range of.Members() {
		m := of.Member(i)
		text, err := m.Name()
		if err != nil {
			return 0, false, err
		}
		if text == name {
			return m.BitOffset / 8, true, nil
		}
		inner, err := kernel.Type(m.Type)
		if err != nil {
			return 0, false, err
		}
		if text != "" || inner.Kind != btf.KindStruct {
			continue
		}
		if off, ok, err := memberOffset(kernel, &inner, name); ok || err != nil {
			return m.BitOffset/8 + off, ok, err
		}
	}
	return 0, false, nil
}

// initialNamespace is the inode of the initial PID namespace (PROC_PID_INIT_INO in
// include/linux/proc_ns.h).
const initialNamespace = 0xeffffffc

// initialID returns the ID of a process in the initial PID namespace. In another one only a process itself
// can find it out: it asks the kernel by a program.
func initialID(pid int) (uint32, error) {
	self, err := thisProcess()
	if err != nil {
		return 0, err
	}
	if self.ino == 0 || self.ino == initialNamespace {
		return uint32(pid), nil
	}
	if pid != os.Getpid() {
		return 0, fmt.Errorf("process %d: what descends from another process than this one is known in the initial PID namespace only", pid)
	}
	ask, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "who", Type: ebpf.RawTracepoint, License: "GPL", Instructions: asm.Instructions{
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.Return(),
	}})
	if err != nil {
		return 0, fmt.Errorf("ask for this process's ID: %w", kernelerr.Explain(err))
	}
	defer ask.Close()
	return ask.Run(&ebpf.RunOptions{})
}

// filter jumps to a label unless the current process descends from the root, or is it. It uses R9, and 8 bytes of
// stack below the first stack bytes.
func (t *tree) filter(stack int, exit string) asm.Instructions {
	const found = "descends"
	at := int16(-stack - 8)
	read := func(off int32, size int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.RFP),
			asm.Add.Imm(asm.R1, int32(at)),
			asm.Mov.Imm(asm.R2, size),
			asm.Mov.Reg(asm.R3, asm.R9),
			asm.Add.Imm(asm.R3, off),
			asm.FnProbeReadKernel.Call(),
			asm.JNE.Imm(asm.R0, 0, exit),
		}
	}
	insns := asm.Instructions{asm.FnGetCurrentTask.Call(), asm.Mov.Reg(asm.R9, asm.R0)}
	for i := range maxAncestors {
		if i > 0 {
			insns = append(insns, read(t.parent, 8)...)
			insns = append(insns, asm.LoadMem(asm.R9, asm.RFP, at, asm.DWord), asm.JEq.Imm(asm.R9, 0, exit))
		}
		insns = append(insns, read(t.tgid, 4)...)
		insns = append(insns,
			asm.LoadMem(asm.R0, asm.RFP, at, asm.Word),
			asm.JEq.Imm(asm.R0, int32(t.root), found),
			asm.JLE.Imm(asm.R0, 1, exit), // the first process, or the idle one
		)
	}
	return append(insns, asm.Ja.Label(exit), asm.Mov.Imm(asm.R0, 0).WithSymbol(found))
}
