package app

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
)

// aside is the source as the screens see it. A source that reads thousands of nodes may
// hold its lock when it is told what is looked at, or asked how it goes; keys must not
// wait for that. So it is told by a goroutine of its own, and tells what was learnt last.
type aside struct {
	watch.Source
	stats watch.Stats // as last read
	tell  func(func(watch.Source))
}

// Stats implements watch.Source.
func (a *aside) Stats() watch.Stats { return a.stats }

// Focus implements watch.Source.
func (a *aside) Focus(f watch.Focus) { a.tell(func(s watch.Source) { s.Focus(f) }) }

// Refresh implements watch.Source.
func (a *aside) Refresh() { a.tell(watch.Source.Refresh) }

// Pace implements watch.Source.
func (a *aside) Pace(p watch.Pace) { a.tell(func(s watch.Source) { s.Pace(p) }) }

// measured tells how the reading goes.
type measured struct{ stats watch.Stats }

// measure asks for it beside the program.
func (m *Model) measure() tea.Cmd {
	src := m.o.Source
	return func() tea.Msg { return measured{src.Stats()} }
}

// teller passes on what a source is told, in order. Nobody waits for it: what comes while
// the source is busy stands in line, and the line is short, as it is made by hand.
type teller struct{ queue chan func(watch.Source) }

const tellings = 1024 // a source that takes none for so long hears no more

func newTeller() *teller { return &teller{make(chan func(watch.Source), tellings)} }

func (t *teller) tell(what func(watch.Source)) {
	select {
	case t.queue <- what:
	default:
	}
}

func (t *teller) run(ctx context.Context, src watch.Source) {
	for {
		select {
		case <-ctx.Done():
			return
		case what := <-t.queue:
			what(src)
		}
	}
}
