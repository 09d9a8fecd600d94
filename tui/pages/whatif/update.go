package whatif

import (
	"fmt"
	"maps"
	"time"

	tea "charm.land/bubbletea/v2"

	engine "cnictl/capacity/whatif"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// Update implements pages.Page.
func (m *Model) Update(c pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Do:
		return m.do(c, msg.Action)
	case pages.Mouse:
		m.frame.Mouse(msg, c.Clock)
	case pages.Gathered:
		if o, ok := msg.Rows.(outlook); ok {
			m.busy, m.last = false, o
			m.fill(c)
		}
	}
	return nil
}

// pace returns how old the nodes of the simulation may be.
func (m *Model) pace() time.Duration {
	if m.last.nodes > 100 {
		return 10 * time.Second
	}
	return time.Second
}

// Gather returns a command that simulates some more nodes if the nodes or the settings have
// changed, or if nodes are left, else nil. It stops when the screen is left.
func (m *Model) Gather(c pages.Context) tea.Cmd {
	if m.busy || c.View == nil {
		return nil
	}
	fresh := m.last.today == nil || c.View.Generation != m.view && c.Clock.Sub(m.taken) >= m.pace()
	if !fresh && m.last.done == m.last.nodes && m.last.set.equal(m.set) {
		return nil
	}
	m.busy = true
	if fresh {
		m.taken, m.view, m.at = c.Clock, c.View.Generation, c.Now
	}
	sim, set, view, in := m.sim, maps.Clone(m.set), c.View, m.in
	return func() tea.Msg {
		if fresh {
			sim.take(view, in)
		}
		return pages.Gathered{To: m, Rows: sim.step(set)}
	}
}

func (m *Model) do(c pages.Context, action string) tea.Cmd {
	switch action {
	case keymap.More, keymap.In:
		m.step(c, 1)
	case keymap.Less:
		m.step(c, -1)
	case keymap.TenMore:
		m.step(c, 10)
	case keymap.TenLess:
		m.step(c, -10)
	case keymap.Reset:
		if r, ok := m.table.Row(); ok {
			delete(m.set, r.name)
			m.fill(c)
		}
	case keymap.ResetAll:
		m.set = changes{}
		m.fill(c)
	case keymap.CopyCommand:
		if text := m.command(); text != "" {
			return tea.Batch(pages.Copy(text), say(draw.Good, "copied "+text))
		}
		if m.set.differs() {
			return say(draw.Faint, "a command sets one value on all nodes, so none can change each node's own")
		}
		return say(draw.Faint, "no setting is changed: no command to copy")
	default:
		m.frame.Work(action, c.Clock)
	}
	return nil
}

// At implements pages.Pointing: the node, if there is only one.
func (m *Model) At(pages.Context) (pages.Object, bool) {
	return pages.Object{Node: m.opened.Node}, m.opened.Node != ""
}

func say(r draw.Role, text string) tea.Cmd {
	return func() tea.Msg { return pages.Toast{Text: text, Role: r} }
}

// step changes the setting under the cursor.
func (m *Model) step(c pages.Context, by int) {
	r, ok := m.table.Row()
	if !ok {
		return
	}
	today := m.last.today[r.name]
	if today.least < today.most { // each node starts from its own value
		before, _ := each(m.set[r.name])
		if by = max(before+by, -today.most); by == 0 {
			delete(m.set, r.name)
		} else {
			m.set[r.name] = fmt.Sprintf("%+d", by)
		}
		m.fill(c)
		return
	}
	from, changed := m.set[r.name]
	if !changed {
		from = today.usual
	}
	for _, k := range engine.Knobs() {
		if k.Name != r.name {
			continue
		}
		var s engine.Settings
		_ = k.Set(&s, from) // a valid value of this setting
		k.Step(&s, by)
		m.set[r.name] = k.Text(s)
		if today.same && m.set[r.name] == today.usual {
			delete(m.set, r.name)
		}
	}
	m.fill(c)
}
