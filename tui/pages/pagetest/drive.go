package pagetest

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// Screen drives a page.
type Screen struct {
	Page          pages.Page
	Fleet         *Source
	Width, Height int
	Theme         *draw.Theme
	ASCII, Wide   bool
	Opened        []pages.Open // what the page asked the app to open
	Asked         []pages.Read
	Deaf          bool // requests get no answer
	Doctor        func(pages.Examine) (document.DoctorReport, error)
	Examined      []pages.Examine // what the page asked the doctor
	Above         pages.Page      // what the page put above itself
}

// Open shows a page over a fleet, as the app does when the page is entered.
func Open(p pages.Page, f *Source, width, height int) *Screen {
	s := &Screen{Page: p, Fleet: f, Width: width, Height: height, Theme: draw.PlainTheme()}
	s.Send(pages.Changed{})
	_ = s.Frame()
	return s
}

// Context returns what the page sees.
func (s *Screen) Context() pages.Context {
	now := s.Fleet.Now()
	return pages.Context{Width: s.Width, Height: s.Height, View: s.Fleet.View(), Source: s.Fleet, Theme: s.Theme, Now: now, Clock: now, ASCII: s.ASCII, Wide: s.Wide, Examines: s.Doctor != nil}
}

// Send sends a message to the page and carries out the commands it returns.
func (s *Screen) Send(msg tea.Msg) {
	s.run(s.Page.Update(s.Context(), msg))
	if g, ok := s.Page.(pages.Gatherer); ok {
		s.run(g.Gather(s.Context()))
	}
}

// Do sends actions to the page, or notes the screens to which they lead.
func (s *Screen) Do(actions ...string) {
	for _, a := range actions {
		if to, ok := pages.Jump(s.Page, s.Context(), a); ok {
			s.Opened = append(s.Opened, to)
			continue
		}
		s.Send(pages.Do{Action: a})
	}
}

// Wait lets time pass, one second at a time.
func (s *Screen) Wait(seconds int) {
	for range seconds {
		s.Fleet.Wait(time.Second)
		s.Send(pages.Second{Now: s.Fleet.Now()})
	}
}

func (s *Screen) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case pages.Open:
		s.Opened = append(s.Opened, msg)
	case pages.Gathered:
		s.Send(msg)
	case pages.Above:
		s.Above = msg.Page
	case pages.Examine:
		s.Examined = append(s.Examined, msg)
		if !s.Deaf {
			r, err := s.Doctor(msg)
			s.Send(pages.Examined{To: msg.To, ID: msg.ID, Report: r, Err: err})
		}
	case pages.Read:
		s.Asked = append(s.Asked, msg)
		if !s.Deaf {
			d := watch.Detail{Node: msg.Node, At: s.Fleet.Now(), Errors: map[watch.Want]document.NodeError{msg.Want: {Reason: introspect.ReasonNoEndpoint}}}
			if s.Fleet.Documents != nil {
				d = s.Fleet.Documents(msg.Node, msg.Want, msg.Query)
			}
			s.Send(pages.Loaded{ID: msg.ID, Want: msg.Want, Detail: d})
		}
	}
}

// Frame returns what the page draws now.
func (s *Screen) Frame() []string { return s.Page.Lines(s.Context()) }
