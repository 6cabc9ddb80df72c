package entries

import "sync"

// ByFunction are facts of the functions of an image, learned when they are asked for: those of the first few functions one by one, for each of which debug information is read
// through; then those of all functions together.
type ByFunction[T any] struct {
	mu  sync.Mutex
	one map[FunctionKey]*learned[T]

	everyOnce sync.Once
	every     map[FunctionKey]T
	everyErr  error
}

type learned[T any] struct {
	once sync.Once
	is   T
	err  error
}

// Of returns what is known of a function. one learns it for the function alone, which is done for so few of them, and all for every function: those of which nothing is known
// may be missing.
func (b *ByFunction[T]) Of(k *FunctionKey, few int, one func() (T, error), all func() (map[FunctionKey]T, error)) (T, error) {
	b.mu.Lock()
	l := b.one[*k]
	if l == nil && len(b.one) < few {
		if b.one == nil {
			b.one = make(map[FunctionKey]*learned[T])
		}
		l = new(learned[T])
		b.one[*k] = l
	}
	b.mu.Unlock()
	if l != nil {
		l.once.Do(func() { l.is, l.err = one() })
		return l.is, l.err
	}
	b.everyOnce.Do(func() { b.every, b.everyErr = all() })
	return b.every[*k], b.everyErr
}
