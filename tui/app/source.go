package app

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
)

// queuedSource is the source as the screens see it. A source that reads thousands of nodes
// may hold its lock when Focus or Stats is called, and key presses must not wait for that.
// So a goroutine makes the calls, from a queue, and Stats returns the last values read.
type queuedSource struct {
	watch.Source
	stats watch.Stats // as last read
	call  func(func(watch.Source))
}

// Stats implements watch.Source.
func (s *queuedSource) Stats() watch.Stats { return s.stats }

// Focus implements watch.Source.
func (s *queuedSource) Focus(f watch.Focus) { s.call(func(src watch.Source) { src.Focus(f) }) }

// Refresh implements watch.Source.
func (s *queuedSource) Refresh() { s.call(watch.Source.Refresh) }

// Pace implements watch.Source.
func (s *queuedSource) Pace(p watch.Pace) { s.call(func(src watch.Source) { src.Pace(p) }) }

// measured carries the newest statistics of the source.
type measured struct{ stats watch.Stats }

// measure reads the statistics outside Update.
func (m *Model) measure() tea.Cmd {
	src := m.o.Source
	return func() tea.Msg { return measured{src.Stats()} }
}

// callQueue passes calls to a source, in order, without blocking the caller. The queue is
// short: each call comes from a key press.
type callQueue struct{ calls chan func(watch.Source) }

const maxQueued = 1024 // calls to a stuck source; further ones are dropped

func newCallQueue() *callQueue { return &callQueue{make(chan func(watch.Source), maxQueued)} }

func (q *callQueue) add(call func(watch.Source)) {
	select {
	case q.calls <- call:
	default:
	}
}

func (q *callQueue) run(ctx context.Context, src watch.Source) {
	for {
		select {
		case <-ctx.Done():
			return
		case call := <-q.calls:
			call(src)
		}
	}
}
