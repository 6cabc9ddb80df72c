package mapping

import "sync/atomic"

// Users counts the calls that use something, so that it is closed when the last of them has ended:
// Close need not wait for calls that may call it themselves.
type Users struct {
	state   atomic.Int64 // twice the number of calls, and 1 if Close was called
	closing atomic.Bool
	closed  atomic.Bool
	release func() error
}

// Enter notes that a call has begun. It is false if Close was called before. Otherwise Leave must follow.
func (u *Users) Enter() bool {
	if u.state.Add(2)&1 == 0 {
		return true
	}
	u.Leave()
	return false
}

// Leave notes that a call has ended.
func (u *Users) Leave() {
	if u.state.Add(-2) == 1 {
		_ = u.end() // nobody is there to tell: Close has returned
	}
}

// Closed reports whether Close was called.
func (u *Users) Closed() bool { return u.state.Load()&1 != 0 }

// Close makes every Enter from now on return false, and calls release, once: itself and with its error if
// no call is under way, or else when the last one leaves. Further calls of Close have no effect.
func (u *Users) Close(release func() error) error {
	if !u.closing.CompareAndSwap(false, true) {
		return nil
	}
	u.release = release
	if u.state.Add(1) == 1 {
		return u.end()
	}
	return nil
}

// end is called when nobody uses what was closed, and nobody can any more. An Enter that was too late also
// leaves, so it may be called again.
func (u *Users) end() error {
	if !u.closed.CompareAndSwap(false, true) {
		return nil
	}
	return u.release()
}
