package ktable

import "sort"

// StaticBranch is an entry of the table of static branches: struct jump_entry.
type StaticBranch struct {
	Entry  uint64 // its own address
	Code   uint64 // the instruction that the kernel patches
	Key    uint64 // struct static_key
	Branch uint64 // what the branch was compiled with: 0 or 1
}

// flagsOfKey are the lower bits of an entry's key, which are its flags: branch and init.
const flagsOfKey = 3

// StaticBranches returns the static branches at [lo, hi), in order.
func (t *Tables) StaticBranches(lo, hi uint64) (out []StaticBranch) {
	x := t.jumps
	if x == nil {
		return nil
	}
	k := sort.Search(len(x.at), func(k int) bool { return x.at[k].addr >= lo })
	for ; k < len(x.at) && x.at[k].addr < hi; k++ {
		e := x.list.at(int(x.at[k].n))
		key := e.near(8)
		if e.form.word == 8 {
			key = e.addr + 8 + e.word(8)
		}
		out = append(out, StaticBranch{e.addr, x.at[k].addr, key &^ flagsOfKey, key & 1})
	}
	return out
}
