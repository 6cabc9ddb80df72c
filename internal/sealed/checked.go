package sealed

import "sync/atomic"

// Checked is bytes that are used where they are, each page after it was compared with its checksum. Several
// goroutines may use it.
type Checked struct {
	d    []byte
	sum  func(page int) uint32
	fail func(from, to int) error
	done []atomic.Uint32 // a bit for each page
}

// NewChecked returns data whose pages have the checksums that sum returns. fail makes the error for a page
// with another one.
func NewChecked(data []byte, sum func(page int) uint32, fail func(from, to int) error) *Checked {
	return &Checked{data, sum, fail, make([]atomic.Uint32, (pagesOf(len(data))+31)/32)}
}

// Bytes returns a range, which must be inside the data.
func (c *Checked) Bytes(from, to int) ([]byte, error) {
	for p := from / PageSize; from < to && p <= (to-1)/PageSize; p++ {
		if c.done[p/32].Load()&(1<<(p%32)) != 0 {
			continue
		}
		lo, hi := p*PageSize, min((p+1)*PageSize, len(c.d))
		if Sum(c.d[lo:hi]) != c.sum(p) {
			return nil, c.fail(lo, hi)
		}
		c.done[p/32].Or(1 << (p % 32))
	}
	return c.d[from:to:to], nil
}
