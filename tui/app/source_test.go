package app

import (
	"context"
	"slices"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// busy is a source that holds its lock: it answers no call until it is released.
type busy struct {
	*pagetest.Source
	free chan struct{}

	mu    sync.Mutex // guards calls
	calls []string
}

func (s *busy) note(what string) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, what)
}

func (s *busy) Focus(f watch.Focus) { s.note("focus " + f.Open) }
func (s *busy) Refresh()            { s.note("refresh") }

func (s *busy) Pace(p watch.Pace) {
	if p.Paused {
		s.note("pause")
	} else {
		s.note("go on")
	}
}

func (s *busy) Stats() watch.Stats { <-s.free; return s.Source.Stats() }

// TestKeysDoNotWaitForTheSource: while the source is busy, keys work and frames are drawn. The
// source receives its calls, in order, once it has time.
func TestKeysDoNotWaitForTheSource(t *testing.T) {
	t.Parallel()
	src := &busy{Source: pagetest.NewSource(40, 1), free: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	queue := newCallQueue()
	b := newBench(t, src.Source, nil)
	b.o.Source, b.src.Source, b.src.call = src, src, queue.add
	b.resize(120, 40)
	b.send(changed{src.View(), src.Source.Stats()})
	_, next := b.Update(second{b.ticks})
	if next == nil {
		t.Fatal("nothing is asked each second")
	}
	for _, k := range []string{"j", "p", "p", "ctrl+g", "esc", "r", "enter"} {
		b.Update(press(k))
		checkFrame(t, b.Model, k)
	}
	b.Update(pages.Open{Screen: "node", Node: pagetest.NodeName(3)})
	var group sync.WaitGroup
	group.Go(func() { queue.run(ctx, src) })
	last := make(chan struct{})
	queue.add(func(watch.Source) { close(last) })
	close(src.free)
	<-last
	cancel()
	group.Wait()
	src.mu.Lock()
	defer src.mu.Unlock()
	var heard []string
	for _, what := range src.calls {
		if what != "focus " { // the focus of rows
			heard = append(heard, what)
		}
	}
	want := []string{"pause", "go on", "refresh", "focus " + pagetest.NodeName(3)}
	if !slices.Equal(heard, want) {
		t.Errorf("calls %q, want %q", heard, want)
	}
}

// TestStatsAreRead: the statistics shown are those read outside the program's loop.
func TestStatsAreRead(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 5)
	s := b.fleet.Stats()
	s.Failed = 4711
	b.fleet.SetStats(s)
	b.press("ctrl+g")
	b.lacks(t, "4,711")
	b.run(func() tea.Msg { return b.measure()() })
	b.sees(t, "4,711")
}
