package app

import (
	"reflect"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// Init asks the terminal for its background once.
func (m *Model) Init() tea.Cmd {
	m.asked = m.o.Now()
	return guarded(tea.Batch(m.tick(), m.opening, tea.RequestBackgroundColor)) // not only for the auto theme
}

// Update handles one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.o.Now()
	m.drawn.fresh = false
	cmd := m.take(msg)
	m.updateFocus()
	return m, guarded(tea.Batch(cmd, m.gather()))
}

func (m *Model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 0), max(msg.Height, 0)
	case tea.KeyPressMsg:
		m.toast = pages.Toast{}
		return m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseMsg:
		return m.pointer(msg)
	case tea.FocusMsg:
		m.away = false
		return m.tick()
	case tea.BlurMsg:
		m.away = true
	case tea.ResumeMsg:
		return m.tick()
	case tea.ColorProfileMsg:
		m.term = terminal(msg.Profile, m.o.Environ, m.term.Light)
		m.recolour()
	case tea.BackgroundColorMsg:
		if m.now.Sub(m.asked) <= backgroundLimit {
			m.term.Light = !msg.IsDark()
			m.recolour()
		}
	case broke:
		panic(msg.String())
	case changed:
		return m.changed(msg)
	case measured:
		m.src.stats = msg.stats
	case second:
		return m.second(msg)
	case sought:
		return m.sought(msg)
	case fade:
	case pages.Open:
		return m.open(msg)
	case pages.Back:
		cmd, _ := m.back()
		return cmd
	case pages.Toast:
		return m.say(msg.Role, msg.Text)
	case pages.Read:
		return m.fx.read(msg)
	case pages.Loaded:
		if msg.ID == searchID+m.search.id {
			return m.searched(msg.Detail)
		}
		return m.all(msg)
	case pages.Gathered:
		return msg.To.Update(m.context(), msg)
	case pages.Examine:
		return m.examine(msg)
	case pages.Examined:
		return m.examined(msg)
	case pages.Above:
		return m.overlay(msg.Page)
	case exported:
		if msg.err != nil {
			return m.say(draw.Bad, "not exported: "+msg.err.Error())
		}
		return m.say(draw.Good, "written to "+msg.path)
	case connected:
		return m.connected(msg)
	case notSaved:
		return m.say(draw.Warn, "view settings not saved: "+msg.err.Error())
	default:
		return m.all(msg)
	}
	return nil
}

// gather lets a page with many rows select them again when the data, the filter or the
// order has changed.
func (m *Model) gather() tea.Cmd {
	if g, ok := m.page().(pages.Gatherer); ok {
		return g.Gather(m.context())
	}
	return nil
}

// all passes a message to every screen on the stack: data read for a screen still belongs
// to it when another is on top.
func (m *Model) all(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, e := range m.router.stack {
		cmds = append(cmds, e.page.Update(m.context(), msg))
	}
	return tea.Batch(cmds...)
}

// changed takes a new view. Only the top screen is updated now, the others when they are
// entered.
func (m *Model) changed(c changed) tea.Cmd {
	m.src.stats = c.stats
	if m.paused {
		return nil
	}
	m.view = c.view
	return m.page().Update(m.context(), pages.Changed{})
}

// still reports whether nothing on the screen changes: the terminal has lost focus, or
// reading is paused. A paused recording is not still, since screens opened meanwhile read
// its documents.
func (m *Model) still() bool {
	_, recorded := m.recording()
	return m.away || m.paused && !recorded
}

// tick starts a chain of ticks, one per second. It ends when the screen is still.
func (m *Model) tick() tea.Cmd {
	m.ticks++
	if m.still() {
		m.ticking = false
		return nil
	}
	m.ticking = true
	chain := m.ticks
	return m.fx.after(time.Second, second{chain})
}

func (m *Model) second(s second) tea.Cmd {
	if s.chain != m.ticks || m.still() {
		return nil
	}
	return tea.Batch(m.page().Update(m.context(), pages.Second{Now: m.o.Source.Now()}), m.measure(), m.tick())
}

// updateFocus sends the source what is on the screen, if that changed.
func (m *Model) updateFocus() {
	m.forgetDoctor()
	if m.width == 0 || m.height == 0 {
		return
	}
	f := m.page().Focus(m.context())
	f.Away = m.away
	if m.focused && sameFocus(f, m.focus) {
		return
	}
	m.focus, m.focused = f, true
	m.src.Focus(f)
}

func sameFocus(a, b watch.Focus) bool { return reflect.DeepEqual(a, b) }

// paste inserts text where the user is typing.
func (m *Model) paste(text string) {
	if m.mode == filtering || m.mode == choosing {
		m.input.Type(text)
		m.typed()
	}
}

// pointer passes mouse events within the page's area to the page.
func (m *Model) pointer(msg tea.MouseMsg) tea.Cmd {
	if m.mode != browsing || m.small() {
		return nil
	}
	const wheel, double = 3, 400 * time.Millisecond
	at := msg.Mouse()
	out := pages.Mouse{X: at.X, Y: at.Y - m.headerLines()}
	if out.Y < 0 || out.Y >= m.body() {
		return nil
	}
	switch msg.(type) {
	case tea.MouseClickMsg:
		if at.Button != tea.MouseLeft {
			return nil
		}
		out.Click = true
		out.Double = m.click.x == at.X && m.click.y == at.Y && m.now.Sub(m.click.at) < double
		m.click.x, m.click.y, m.click.at = at.X, at.Y, m.now
		if out.Double {
			m.click.at = time.Time{} // a third click starts over
		}
	case tea.MouseWheelMsg:
		switch at.Button {
		case tea.MouseWheelUp:
			out.Wheel = -wheel
		case tea.MouseWheelDown:
			out.Wheel = wheel
		default:
			return nil
		}
	default:
		return nil
	}
	return m.page().Update(m.context(), out)
}
