package resolve

import (
	"sync"
	"sync/atomic"
)

// memo is a sync.Map of which an empty one takes a word, and nothing to clear: an image has thousands of units, and most questions fill few.
type memo struct{ m atomic.Pointer[sync.Map] }

// Load returns the value of a key.
func (m *memo) Load(key any) (value any, ok bool) {
	if x := m.m.Load(); x != nil {
		return x.Load(key)
	}
	return nil, false
}

// Store sets the value of a key.
func (m *memo) Store(key, value any) {
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

// remembered returns the value of a key, which find returns the first time.
func remembered[T any](m *memo, key any, find func() (T, error)) (T, error) {
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
func (m *memo) Clear() { m.m.Store(nil) }
