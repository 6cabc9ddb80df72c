package ktable

// alternative is code that the kernel may replace when it boots: struct alt_instr, in which the
// lengths are the last bytes, in x86's 13 bytes before a length of padding, and in s390x's 11 are one.
type alternative struct {
	at, with   uint64 // addresses
	size, used uint64 // bytes there; on arm64, none means that a function of the kernel writes it
}

func alternativeOf(e entry) alternative {
	size, used := len(e.d)-2, len(e.d)-1
	switch len(e.d) {
	case 13:
		size, used = size-1, used-1
	case 11:
		size = used
	}
	return alternative{e.near(0), e.near(4), uint64(e.d[size]), uint64(e.d[used])}
}

// isReplaced accepts what apply_alternatives in arch/x86/kernel/alternative.c does: a replacement
// that is not longer than the code, both of them instructions. Linux 7.2 for arm64 has some of no code.
func isReplaced(m *Marks, e entry) bool {
	a := alternativeOf(e)
	return a.used <= a.size && m.isCode(a.at) && m.isCode(a.at+a.size) && m.isCode(a.with)
}

// maxReplaced is the bytes that an alternative can replace: their number is a byte.
const maxReplaced = 255

// replacedEdges are the ways through a replacement. They begin at the first instruction of the
// code that is replaced. The rest of that is filled with NOPs.
func replacedEdges(c *code, e entry, add func(from, to uint64)) {
	a := alternativeOf(e)
	end := a.at + a.size
	onward := true
	for at := a.with; at < a.with+a.used; {
		in, ok := c.next(at)
		if !ok {
			break
		}
		// Branches are relative to where they stand in the image: the kernel adapts them
		// (recompute_jump on x86, get_alt_insn on arm64).
		if to := at + uint64(in.Target); in.Branches && (to < a.with || to > a.with+a.used) {
			add(a.at, to)
		}
		onward = onward && in.Onward
		at += uint64(in.Size)
	}
	for at := a.at; onward && at < end; {
		in, ok := c.next(at)
		if !ok {
			break
		}
		if !in.Onward {
			add(at, end)
		}
		at += uint64(in.Size)
	}
}
