package sim

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"time"
)

// fiber is sequential code whose waits the world ends. Only the world's loop resumes fibers,
// so that only one piece of code runs at a time.
type fiber struct {
	world *World
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ended bool
}

// killed is the panic that ends a fiber whose process died.
type killed struct{}

// spawn starts a fiber immediately, as a separate event.
func (w *World) spawn(body func()) *fiber {
	f := &fiber{world: w}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		defer func() {
			f.ended = true
			if r := recover(); r != nil && r != any(killed{}) {
				panic(withStack(r)) // the world's loop has another stack
			}
		}()
		body()
	})
	w.after(0, f.resume)
	return f
}

// broken is a panic value with its stack.
type broken struct {
	what  any
	stack string
}

func (b broken) String() string { return fmt.Sprintf("%v\n%s", b.what, b.stack) }

func withStack(r any) broken {
	if b, ok := r.(broken); ok {
		return b
	}
	text := make([]byte, 1<<14)
	return broken{r, string(text[:runtime.Stack(text, false)])}
}

// running removes the fibers that have ended.
func running(all []*fiber) []*fiber {
	kept := all[:0]
	for _, f := range all {
		if !f.ended {
			kept = append(kept, f)
		}
	}
	clear(all[len(kept):])
	return kept
}

// resume runs the fiber until it waits again or ends.
func (f *fiber) resume() {
	if f.ended {
		return
	}
	outer := f.world.running
	f.world.running = f
	f.next()
	f.world.running = outer
}

// park waits until the fiber is resumed.
func (f *fiber) park() {
	if !f.yield(struct{}{}) {
		panic(killed{})
	}
}

// kill ends the fiber where it waits.
func (f *fiber) kill() {
	if f.ended {
		return
	}
	f.ended = true
	outer := f.world.running
	f.world.running = f
	f.stop()
	f.world.running = outer
}

// await parks the running fiber until something that start has initiated calls done.
func (w *World) await(start func(done func())) {
	f, called, parked := w.running, false, false
	start(func() {
		if called {
			return
		}
		called = true
		switch {
		case !parked:
		case w.running == nil:
			f.resume()
		default: // called by another fiber, which continues first
			w.after(0, f.resume)
		}
	})
	if !called {
		parked = true
		f.park()
	}
}

// sleep parks the running fiber for a time.
func (w *World) sleep(d time.Duration) {
	w.await(func(done func()) { w.after(d, done) })
}

// within is the context of a task: the scope of its waits, and whether a pod may be
// waiting for the task. It has no deadline and no values; its waits go through the world.
type within struct {
	*scope
	urgent bool
}

func scopeOf(ctx context.Context) *scope { return ctx.(within).scope }

func (s *scope) Deadline() (time.Time, bool) { return time.Time{}, false }
func (s *scope) Done() <-chan struct{}       { return nil }
func (s *scope) Value(any) any               { return nil }

func (s *scope) Err() error {
	if s.over {
		return errEnded
	}
	return nil
}

// scope bounds waits: they end when it ends.
type scope struct {
	over    bool
	waiting []*wait
}

type wait struct {
	over bool
	end  func()
}

// cancel ends the scope and all its waits.
func (s *scope) cancel() {
	if s.over {
		return
	}
	s.over = true
	waiting := s.waiting
	s.waiting = nil
	for _, x := range waiting {
		if !x.over {
			x.end()
		}
	}
}

// awaitIn is await within a scope. It returns false if the scope ended first.
func (w *World) awaitIn(s *scope, start func(done func())) (finished bool) {
	if s.over {
		return false
	}
	w.await(func(done func()) {
		x := &wait{}
		x.end = func() {
			x.over = true
			done()
		}
		s.waiting = append(s.waiting, x)
		start(func() {
			if !x.over {
				x.over, finished = true, true
				done()
			}
		})
		if len(s.waiting) > 64 {
			s.tidy()
		}
	})
	return finished
}

func (s *scope) tidy() {
	kept := s.waiting[:0]
	for _, x := range s.waiting {
		if !x.over {
			kept = append(kept, x)
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}
