package prologue

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bpfprologue/bpfprologue/internal/disasm"
)

// String prints the instructions one per line, numbered and written as the kernel's
// verifier does in its log, followed by their comments:
//
//	0: r3 = *(u64 *)(r1 +80)           ; page: %rax · get_page inlined in vdso_fault+93
//	1: r2 = 0
func (p *Prologue) String() string {
	var b strings.Builder
	iter := p.Insns.Iterate()
	for iter.Next() {
		line := fmt.Sprintf("%3d: %s", iter.Offset, disasm.Text(iter.Ins))
		if src := iter.Ins.Source(); src != nil {
			line += strings.Repeat(" ", max(0, commentColumn-utf8.RuneCountInString(line))) + " ; " + src.String()
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

const commentColumn = 36
