package app

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// Limits of what the router remembers.
const (
	maxHistory = 50
	maxPages   = 24
	maxDepth   = 12
)

// entry is one screen on the stack.
type entry struct {
	open pages.Open
	page pages.Page
}

// router is the stack of screens and the history. It keeps the pages of recent screens, so
// that going back restores them as they were.
type router struct {
	stack   []entry
	kept    []entry // least recently shown first
	history [][]pages.Open
	at      int          // index in history
	last    []pages.Open // the stack shown before this one
}

func (r *router) top() entry { return r.stack[len(r.stack)-1] }

func (r *router) opens() []pages.Open {
	out := make([]pages.Open, len(r.stack))
	for i, e := range r.stack {
		out[i] = e.open
	}
	return out
}

// pageOf finds or makes the page of a screen.
func (m *Model) pageOf(open pages.Open) (pages.Page, bool) {
	r := &m.router
	if i := slices.IndexFunc(r.kept, func(e entry) bool { return e.open == open }); i >= 0 {
		e := r.kept[i]
		r.kept = append(slices.Delete(r.kept, i, i+1), e)
		return e.page, true
	}
	s, ok := screenOf(open.Screen)
	if !ok {
		return nil, false
	}
	p := s.new(open)
	if l := listOf(p); l != nil {
		was, ok := m.remembered.of(m.cluster(), open)
		switch {
		case ok:
			_ = l.SetOrder(was.order) // what no longer applies is ignored
			_ = l.SetFilter(was.filter)
		case open.Screen == "pods" && open.Filter == "" && m.o.Only != "":
			_ = l.SetFilter("namespace=" + m.o.Only) // what is no namespace selects nothing, or is ignored
		}
	}
	r.kept = append(r.kept, entry{open, p})
	if len(r.kept) > maxPages {
		r.kept = r.kept[1:]
	}
	return p, true
}

// show replaces the stack with the given screens.
func (m *Model) show(opens []pages.Open) tea.Cmd {
	var stack []entry
	for _, o := range opens {
		if p, ok := m.pageOf(o); ok {
			stack = append(stack, entry{o, p})
		}
	}
	if len(stack) == 0 {
		return nil
	}
	if len(m.router.stack) > 0 {
		m.router.last = m.router.opens()
	}
	m.router.stack = stack
	return m.enter()
}

// enter refreshes the top screen, which may have missed changes.
func (m *Model) enter() tea.Cmd {
	m.toast = pages.Toast{}
	p := m.page()
	if l := listOf(p); l != nil {
		l.SetWide(m.wide)
	}
	return p.Update(m.context(), pages.Changed{})
}

// open puts a screen on the stack.
func (m *Model) open(open pages.Open) tea.Cmd {
	opens := m.router.opens()
	if i := slices.Index(opens, open); i >= 0 {
		opens = opens[:i]
	}
	if len(opens) >= maxDepth {
		opens = append(opens[:1:1], opens[2:]...)
	}
	return m.record(append(opens, open))
}

// jump opens a screen that needs no object, above the overview.
func (m *Model) jump(name string) tea.Cmd {
	opens := []pages.Open{{Screen: "overview"}}
	if name != "overview" {
		opens = append(opens, pages.Open{Screen: name})
	}
	if slices.Equal(opens, m.router.opens()) {
		return nil
	}
	return m.record(opens)
}

// record shows a stack and adds it to the history.
func (m *Model) record(opens []pages.Open) tea.Cmd {
	r := &m.router
	if len(r.history) > 0 {
		r.history = r.history[:r.at+1]
	}
	r.history = append(r.history, slices.Clone(opens))
	if len(r.history) > maxHistory {
		r.history = r.history[1:]
	}
	r.at = len(r.history) - 1
	return m.show(opens)
}

// back leaves the top screen. It returns false at the root.
func (m *Model) back() (tea.Cmd, bool) {
	if len(m.router.stack) < 2 {
		return nil, false
	}
	if m.overlaid() {
		m.router.stack = m.router.stack[:len(m.router.stack)-1]
		return m.enter(), true
	}
	opens := m.router.opens()
	return m.record(opens[:len(opens)-1]), true
}

// travel steps through the history.
func (m *Model) travel(step int) tea.Cmd {
	to := m.router.at + step
	if to < 0 || to >= len(m.router.history) {
		return m.say(draw.Faint, "no more history")
	}
	m.router.at = to
	return m.show(m.router.history[to])
}

// overlay puts a page on top without adding it to the history. If that page is already on
// top, overlay removes it.
func (m *Model) overlay(p pages.Page) tea.Cmd {
	if top := m.page(); top.Name() == p.Name() {
		m.router.stack = m.router.stack[:len(m.router.stack)-1]
		return m.enter()
	}
	m.router.stack = append(m.router.stack, entry{pages.Open{Screen: p.Name()}, p})
	return m.enter()
}

// overlaid reports whether the page on top is an overlay.
func (m *Model) overlaid() bool {
	_, ok := screenOf(m.router.top().open.Screen)
	return !ok
}
