package entries

import (
	"sync"
	"sync/atomic"
)

// Memo is a sync.Map of which an empty one takes a word, and nothing to clear: an image has thousands of units, and most questions fill few.
type Memo struct{ m atomic.Pointer[sync.Map] }

// Load returns the value of a key.
func (m *Memo) Load(key any) (value any, ok bool) {
	if x := m.m.Load(); x != nil {
		return x.Load(key)
	}
	return nil, false
}

// Store sets the value of a key.
func (m *Memo) Store(key, value any) {
	x := m.m.Load()
	if x == nil {
		if x = new(sync.Map); !m.m.CompareAndSwap(nil, x) {
			if x = m.m.Load(); x == nil {
				return // it was cleared meanwhile
			}
		}
	}
	x.Store(key, value)
}

// Remembered returns the value of a key, which find returns the first time.
func Remembered[T any](m *Memo, key any, find func() (T, error)) (T, error) {
	if known, ok := m.Load(key); ok {
		return known.(T), nil
	}
	value, err := find()
	if err == nil {
		m.Store(key, value)
	}
	return value, err
}

// Clear removes all keys.
func (m *Memo) Clear() { m.m.Store(nil) }
