package record

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/fleet/watch"
)

// TestPlayer_AnswersWhileItSeeks: while a long seek holds the lock for reading the file, no
// call from a screen waits.
func TestPlayer_AnswersWhileItSeeks(t *testing.T) {
	t.Parallel()
	p, clock := open(t, recorded(t))
	p.Seek(start.Add(time.Minute))
	before := nodes(p.View())
	p.work.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Seek(start.Add(19 * time.Minute))
	}()
	for !p.Now().Equal(start.Add(19 * time.Minute)) { // Now reports the target at once
		if t.Context().Err() != nil {
			t.Fatal("Now is not where the seek goes")
		}
	}
	if got := nodes(p.View()); got != before {
		t.Errorf("the view is %s before the fleet of then is put together, want %s", got, before)
	}
	p.Advance()
	p.Refresh()
	p.Speed(2)
	*clock = clock.Add(10 * time.Second)
	p.Pace(watch.Pace{Paused: true})
	if p.Now().Sub(start) != 19*time.Minute+20*time.Second || p.Rate() != 2 || p.Interrupted() || p.Stats().Samples == 0 || p.Title() == "" || p.Info().Nodes != 4 {
		t.Errorf("now %v, rate %v, %+v", p.Now().Sub(start), p.Rate(), p.Stats())
	}
	if d := p.Detail(t.Context(), "steady", watch.WantPlan, watch.Query{}); len(d.Errors) != 1 {
		t.Errorf("%+v", d)
	}
	p.work.Unlock()
	<-done
	p.Advance()
	if got := nodes(p.View()); got == before {
		t.Error("the seek changed nothing")
	}
}

// TestPlayer_LastSeekCounts: of several concurrent seeks, the last request determines the
// final position.
func TestPlayer_LastSeekCounts(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	p, _ := open(t, file)
	p.Play(false)
	p.work.Lock()
	var seeks sync.WaitGroup
	for i := range 8 {
		to := start.Add(time.Duration(i+1) * time.Minute)
		seeks.Go(func() { p.Seek(to) })
		for p.sought.Load() != uint64(i+2) || !p.Now().Equal(to) { // Open did one, too
			if t.Context().Err() != nil {
				t.Fatal("a seek was not taken")
			}
		}
	}
	p.work.Unlock()
	seeks.Wait()
	want, _ := open(t, file)
	want.Seek(start.Add(8 * time.Minute))
	if got := nodes(p.View()); got != nodes(want.View()) {
		t.Errorf("%s, want %s", got, nodes(want.View()))
	}
}

// TestPlayer_Race makes all calls concurrently, for the race detector.
func TestPlayer_Race(t *testing.T) {
	t.Parallel()
	p, err := Open(bytes.NewReader(recorded(t)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = p.Run(ctx) })
	for i := range 3 {
		all.Go(func() {
			for j := range 10 {
				p.Seek(start.Add(time.Duration(i*7+j) * time.Minute))
				p.Speed(float64(i + j))
				p.Play(j%2 == 0)
			}
		})
		all.Go(func() {
			for range 100 {
				_, _, _, _, _ = p.Now(), p.View().Totals, p.Stats(), p.Rate(), p.Info()
				p.Refresh()
				_ = p.Detail(ctx, "steady", watch.WantENIs, watch.Query{})
			}
		})
	}
	cancel()
	all.Wait()
}
