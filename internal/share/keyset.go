package share

import (
	"bytes"
	"hash/maphash"
)

// keySet numbers distinct keys in the order of their first use. A map of strings would do,
// but a whole image has tens of thousands of keys: as strings they would be as many objects
// for the garbage collector, and would be hashed again when two sets are merged.
type keySet struct {
	slots []slot   // open addressing; a power of two, at most half of them in use
	keys  [][]byte // by number; never changed, and shared between sets
	sums  []uint64 // by number
	block []byte   // memory for further keys
}

const blockSize = 1 << 16

// slot is one place of the table. number-1 is the number of its key; 0 marks an empty slot.
type slot struct{ sum, number uint32 }

// keySeed is the same for all sets, so that sums can be compared.
var keySeed = maphash.MakeSeed()

func (s *keySet) len() int { return len(s.keys) }

// number returns a key's number, and whether the key is new.
func (s *keySet) number(key []byte) (n int, first bool) {
	sum := maphash.Bytes(keySeed, key)
	i, n := s.find(key, sum)
	if n >= 0 {
		return n, false
	}
	if len(s.block)+len(key) > cap(s.block) {
		s.block = make([]byte, 0, max(blockSize, len(key)))
	}
	start := len(s.block)
	s.block = append(s.block, key...)
	return s.add(i, s.block[start:len(s.block):len(s.block)], sum), true
}

// find returns a key's slot and its number, or -1 if the slot is free.
func (s *keySet) find(key []byte, sum uint64) (i, n int) {
	if 2*s.len() >= len(s.slots) {
		s.grow(s.len() + 1)
	}
	mask := len(s.slots) - 1
	for i = int(sum) & mask; ; i = (i + 1) & mask {
		x := s.slots[i]
		if x.number == 0 {
			return i, -1
		}
		if n = int(x.number - 1); x.sum == uint32(sum>>32) && bytes.Equal(s.keys[n], key) {
			return i, n
		}
	}
}

// add stores a new key in a slot that find returned.
func (s *keySet) add(i int, key []byte, sum uint64) int {
	s.keys = append(s.keys, key)
	s.sums = append(s.sums, sum)
	s.slots[i] = slot{uint32(sum >> 32), uint32(s.len())}
	return s.len() - 1
}

// grow makes room for more keys.
func (s *keySet) grow(more int) {
	size := max(len(s.slots), 1024)
	for size < 2*(s.len()+more) {
		size *= 2
	}
	s.slots = make([]slot, size)
	mask := size - 1
	for n, sum := range s.sums {
		i := int(sum) & mask
		for s.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = slot{uint32(sum >> 32), uint32(n + 1)}
	}
}

// merge adds the keys of another set.
func (s *keySet) merge(o *keySet) {
	for n, sum := range o.sums {
		if i, old := s.find(o.keys[n], sum); old < 0 {
			s.add(i, o.keys[n], sum)
		}
	}
}
