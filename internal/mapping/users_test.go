package mapping

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// TestUsers: what is closed is released once, when the last call that has begun before has ended.
func TestUsers(t *testing.T) {
	released := 0
	failed := errors.New("failed")
	release := func() error { released++; return failed }
	var u Users
	if !u.Enter() || !u.Enter() {
		t.Fatal("open, but nobody may enter")
	}
	u.Leave()
	if err := errors.Join(u.Close(release), u.Close(release)); err != nil || released != 0 || !u.Closed() {
		t.Errorf("closed in use: %v, released %d times", err, released)
	}
	if u.Enter() || released != 0 {
		t.Errorf("entered after Close, or released %d times in use", released)
	}
	if u.Leave(); released != 1 {
		t.Errorf("released %d times after the last one has left", released)
	}
	if u.Enter() || released != 1 {
		t.Errorf("entered in the end, or released %d times", released)
	}
	var idle Users
	if err := idle.Close(release); !errors.Is(err, failed) || released != 2 {
		t.Errorf("closed while idle: %v, released %d times", err, released)
	}
}

// TestUsersTogether: nobody is inside when it is released.
func TestUsersTogether(t *testing.T) {
	for range 200 {
		var u Users
		var inside, released atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for range 20 {
					if u.Enter() {
						inside.Add(1)
						if released.Load() != 0 {
							t.Error("released in use")
						}
						inside.Add(-1)
						u.Leave()
					}
					if i == 7 {
						_ = u.Close(func() error { released.Add(1 + 100*inside.Load()); return nil })
					}
				}
			})
		}
		wg.Wait()
		if n := released.Load(); n != 1 {
			t.Fatalf("released %d times, or in use", n)
		}
	}
}
