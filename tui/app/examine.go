package app

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/pages"
)

// Examine runs the doctor on the named nodes, or on those of the scope if none is named,
// and returns its report. It may tell the progress and what it has found so far from any goroutine.
type Examine func(ctx context.Context, e pages.Examine) (document.DoctorReport, error)

// examination is the doctor's current run.
type examination struct {
	to     pages.Page // nil if none
	id     uint64
	cancel context.CancelFunc
}

// examiner runs the doctor in the background. A cancelled run ends before the next begins.
func examiner(ctx context.Context, examine Examine) func(pages.Examine) (tea.Cmd, context.CancelFunc) {
	turn := make(chan struct{}, 1)
	return func(e pages.Examine) (tea.Cmd, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		return func() tea.Msg {
			defer cancel()
			out := pages.Examined{To: e.To, ID: e.ID}
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
				out.Err = ctx.Err()
				return out
			}
			// A report returned after cancellation is incomplete.
			if out.Report, out.Err = fleet.Recover(func() (document.DoctorReport, error) {
				return examine(ctx, e)
			}); out.Err == nil {
				out.Err = ctx.Err()
			}
			return out
		}, cancel
	}
}

// examine starts an examination and cancels the running one.
func (m *Model) examine(e pages.Examine) tea.Cmd {
	if m.o.Examine == nil {
		return nil
	}
	m.giveUp()
	cmd, cancel := m.fx.examine(e)
	m.exam = examination{e.To, e.ID, cancel}
	return cmd
}

func (m *Model) examined(e pages.Examined) tea.Cmd {
	if m.exam.to == e.To && m.exam.id == e.ID {
		m.exam = examination{}
	}
	return e.To.Update(m.context(), e)
}

func (m *Model) giveUp() {
	if m.exam.to != nil {
		m.exam.cancel()
		m.exam = examination{}
	}
}

// forgetDoctor cancels the examination of a page that can no longer be shown. One that was only left
// goes on, so that its findings are there on return.
func (m *Model) forgetDoctor() {
	is := func(e entry) bool { return e.page == m.exam.to }
	if m.exam.to != nil && !slices.ContainsFunc(m.router.stack, is) && !slices.ContainsFunc(m.router.kept, is) {
		m.giveUp()
	}
}
