package tracer

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// A program finds out whether the current process is in a control group, or below it, by going down from the root: a group is known by its ID,
// which is the inode of its directory, and how deep it is cannot be seen in a namespace of control groups.

// maxGroups and maxLevels bound the instructions that look for a control group.
const (
	maxGroups = 32
	maxLevels = 16
)

// findGroups returns the IDs of control groups.
func findGroups(dirs []string) (ids []uint64, err error) {
	if len(dirs) > maxGroups {
		return nil, fmt.Errorf("%d control groups: at most %d", len(dirs), maxGroups)
	}
	for _, dir := range dirs {
		var fs unix.Statfs_t
		var st unix.Stat_t
		if err := unix.Statfs(dir, &fs); err != nil {
			return nil, fmt.Errorf("control group %s: %w", dir, err)
		}
		if fs.Type != unix.CGROUP2_SUPER_MAGIC {
			return nil, fmt.Errorf("control group %s: it is no directory of control groups of version 2", dir)
		}
		if err := unix.Stat(dir, &st); err != nil {
			return nil, fmt.Errorf("control group %s: %w", dir, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return nil, fmt.Errorf("control group %s: it is no directory", dir)
		}
		ids = append(ids, st.Ino)
	}
	return ids, nil
}

// inGroups jumps to a label unless the current process is in one of some control groups. It uses R0 to R5.
func inGroups(ids []uint64, exit string) asm.Instructions {
	const in = "in-group"
	var insns asm.Instructions
	for level := range int32(maxLevels) {
		insns = append(insns, asm.Mov.Imm(asm.R1, level), asm.FnGetCurrentAncestorCgroupId.Call(), asm.JEq.Imm(asm.R0, 0, exit))
		for _, id := range ids {
			insns = append(insns, asm.LoadImm(asm.R1, int64(id), asm.DWord), asm.JEq.Reg(asm.R0, asm.R1, in))
		}
	}
	return append(insns, asm.Ja.Label(exit), asm.Mov.Imm(asm.R0, 0).WithSymbol(in))
}

// oneOf jumps to a label unless the current process is one of some. It uses what process.load uses.
func oneOf(list []*process, stack int, exit string) asm.Instructions {
	const is = "is-one"
	var insns asm.Instructions
	for i, p := range list {
		if i == 0 || p.ino != list[i-1].ino || p.dev != list[i-1].dev {
			insns = append(insns, p.load(stack)...)
		}
		insns = append(insns, asm.JEq.Imm(asm.R0, int32(p.tgid), is))
	}
	return append(insns, asm.Ja.Label(exit), asm.Mov.Imm(asm.R0, 0).WithSymbol(is))
}
