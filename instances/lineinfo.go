package instances

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// lineFile is the source file of a prologue's lines.
const lineFile = "prologue"

// numberLines replaces instructions' comments by numbered source lines. cilium/ebpf passes
// comments to the kernel as lines without a file and with number 0, and since Linux 6.10
// the verifier's log omits a line with the file and number of the line before it
// (print_linfo in kernel/bpf/log.c): it would show only the first line of a prologue.
//
// Package btf has no constructor for a Line: it reads lines from the format of the kernel and
// of object files. So numberLines writes that format: BTF without types
// (Documentation/bpf/btf.rst), and a record for each line.
func numberLines(insns asm.Instructions) error {
	le := binary.LittleEndian
	strings := append([]byte{0}, lineFile+"\x00"...)
	var records []byte
	var at []int
	for i := range insns {
		comment, ok := insns[i].Source().(asm.Comment)
		if !ok {
			continue
		}
		at = append(at, i)
		for _, word := range []int{i, 1, len(strings), len(at) << 10} { // instruction, file, text, number and column
			records = le.AppendUint32(records, uint32(word))
		}
		strings = append(append(strings, comment...), 0)
	}
	if len(at) == 0 {
		return nil
	}
	var blob []byte
	blob = le.AppendUint16(blob, 0xeb9f)                    // magic
	blob = append(blob, 1, 0)                               // version and flags
	for _, word := range []int{24, 0, 0, 0, len(strings)} { // of the head, types' offset and length, strings'
		blob = le.AppendUint32(blob, uint32(word))
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(append(blob, strings...)))
	if err != nil {
		return fmt.Errorf("source lines of the prologue: %w", err)
	}
	lines, err := btf.LoadLineInfos(bytes.NewReader(records), le, uint32(len(at)), spec)
	if err != nil {
		return fmt.Errorf("source lines of the prologue: %w", err)
	}
	for i, l := range lines {
		insns[at[i]] = insns[at[i]].WithSource(l.Line)
	}
	return nil
}
