package app

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"cnictl/tui/source"
)

// aside is the source as the screens see it. A source that reads thousands of nodes may
// hold its lock when it is told what is looked at, or asked how it goes; keys must not
// wait for that. So it is told by a goroutine of its own, and tells what was learnt last.
type aside struct {
	source.Source
	stats source.Stats // as last read
	tell  func(func(source.Source))
}

// Stats implements source.Source.
func (a *aside) Stats() source.Stats { return a.stats }

// Focus implements source.Source.
func (a *aside) Focus(f source.Focus) { a.tell(func(s source.Source) { s.Focus(f) }) }

// Refresh implements source.Source.
func (a *aside) Refresh() { a.tell(source.Source.Refresh) }

// Pace implements source.Source.
func (a *aside) Pace(p source.Pace) { a.tell(func(s source.Source) { s.Pace(p) }) }

// measured tells how the reading goes.
type measured struct{ stats source.Stats }

// measure asks for it beside the program.
func (m *Model) measure() tea.Cmd {
	src := m.o.Source
	return func() tea.Msg { return measured{src.Stats()} }
}

// teller passes on what a source is told, in order. Nobody waits for it: what comes while
// the source is busy stands in line, and the line is short, as it is made by hand.
type teller struct{ queue chan func(source.Source) }

const tellings = 1024 // a source that takes none for so long hears no more

func newTeller() *teller { return &teller{make(chan func(source.Source), tellings)} }

func (t *teller) tell(what func(source.Source)) {
	select {
	case t.queue <- what:
	default:
	}
}

func (t *teller) run(ctx context.Context, src source.Source) {
	for {
		select {
		case <-ctx.Done():
			return
		case what := <-t.queue:
			what(src)
		}
	}
}
