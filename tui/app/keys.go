package app

import (
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// intervals are the sampling intervals that the keys step through.
var intervals = []time.Duration{
	2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
}

// key handles one key press.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	typing := m.mode == filtering || m.mode == choosing
	if m.keys.Action(name, nil) == keymap.Quit && !(typing && msg.Text != "") {
		return m.quit()
	}
	switch m.mode {
	case filtering:
		return m.filterKey(name, msg.Text)
	case choosing:
		return m.paletteKey(name, msg.Text)
	case sorting:
		return m.sortKey(name)
	case exporting:
		return m.exportKey(name)
	}
	return m.do(m.keys.Action(name, m.ownKeys()), name)
}

// do carries out an action.
func (m *Model) do(action, key string) tea.Cmd {
	switch action {
	case "":
		return nil
	case keymap.Quit:
		return m.quit()
	case keymap.Back:
		if cmd, ok := m.back(); ok {
			return cmd
		}
		return m.quit()
	case keymap.Suspend:
		return tea.Suspend
	case keymap.Out:
		return m.out(key)
	case keymap.Older:
		return m.travel(-1)
	case keymap.Newer:
		return m.travel(+1)
	case keymap.LastPage:
		if m.router.last == nil {
			return nil
		}
		return m.record(m.router.last)
	case keymap.Screen1:
		return m.nth(key)
	case keymap.Help:
		return m.overlay(newHelp(m.shownKeys(), m.page(), digitTitles()))
	case keymap.Diagnose:
		return tea.Batch(m.overlay(newDiagnostics()), m.fx.memory())
	case keymap.Palette:
		m.begin(choosing, "")
	case keymap.Theme:
		return m.nextTheme()
	case keymap.Mouse:
		m.mouse = !m.mouse
		return m.say(draw.Info, onOff("mouse", m.mouse))
	case keymap.Pause:
		return m.pause()
	case keymap.Refresh:
		m.src.Refresh()
		return tea.Batch(m.say(draw.Info, "refreshing"), m.page().Update(m.context(), pages.Do{Action: action}))
	case keymap.MinuteBack, keymap.MinuteAhead, keymap.TenBack, keymap.TenAhead, keymap.PlaySlower, keymap.PlayFaster:
		return m.onPlayback(action)
	case keymap.Slower:
		return m.pace(+1)
	case keymap.Faster:
		return m.pace(-1)
	case keymap.Object:
		return m.object()
	case keymap.Export:
		m.mode = exporting
	default:
		return m.listed(action)
	}
	return nil
}

// ownKeys returns the keys of the top screen, as the user configured them.
func (m *Model) ownKeys() []keymap.Binding { return m.keys.Page(m.page().Name()) }

// nth opens the screen of a digit key.
func (m *Model) nth(key string) tea.Cmd {
	b, _ := m.keys.Binding(keymap.Screen1)
	d := digits()
	if i := slices.Index(b.Keys, key); i >= 0 && i < len(d) {
		return m.jump(d[i].name)
	}
	return m.say(draw.Faint, "no screen "+key+": there are 1 to "+strconv.Itoa(len(d)))
}

// listed carries out jumps and table actions, and passes the rest to the page.
func (m *Model) listed(action string) tea.Cmd {
	if to, ok := pages.Jump(m.page(), m.context(), action); ok {
		return m.open(to)
	}
	l := m.list()
	own := slices.ContainsFunc(m.ownKeys(), func(b keymap.Binding) bool { return b.Action == action })
	if l == nil || own {
		return m.page().Update(m.context(), pages.Do{Action: action})
	}
	switch action {
	case keymap.Filter:
		m.before = l.Filter()
		m.begin(filtering, l.Filter())
	case keymap.Clear:
		l.Reset()
		m.remember()
		return m.say(draw.Info, "default order, no filter")
	case keymap.NextMatch:
		l.Next(+1, m.now)
	case keymap.PrevMatch:
		l.Next(-1, m.now)
	case keymap.Sort:
		if len(l.SortMenu()) > 0 {
			m.mode = sorting
		}
	case keymap.SortLeft, keymap.SortRight, keymap.Reverse:
		l.Do(action, m.now)
		m.remember()
	case keymap.Faults:
		l.SetFaults(!l.Faults())
		return m.say(draw.Info, onOff("faults only, on this screen", l.Faults()))
	case keymap.Wide:
		m.wide = !m.wide
		l.SetWide(m.wide)
		return m.keep()
	case keymap.Copy:
		return m.copy(l.Identities())
	default:
		return m.page().Update(m.context(), pages.Do{Action: action})
	}
	return nil
}

// out leaves the level or the screen, except that esc clears a filter first.
func (m *Model) out(key string) tea.Cmd {
	if p, ok := m.page().(pages.Leaver); ok && p.Leave(m.context()) {
		m.remember()
		return nil
	}
	if l := m.list(); key == "esc" && l != nil && l.Filter() != "" && !m.overlaid() {
		return m.clear()
	}
	cmd, _ := m.back()
	return cmd
}

func (m *Model) clear() tea.Cmd {
	l := m.list()
	if l == nil {
		return nil
	}
	_ = l.SetFilter("") // an empty filter is always valid
	m.remember()
	return nil
}

func (m *Model) quit() tea.Cmd {
	return tea.Sequence(m.keep(), tea.Quit)
}

// remember keeps the order and the filter of the top screen for this cluster.
func (m *Model) remember() {
	if l := m.list(); l != nil && !m.overlaid() {
		m.remembered.put(m.cluster(), m.router.top().open, listing{l.Order(), l.Filter()})
	}
}

// keep saves the settings for the next run.
func (m *Model) keep() tea.Cmd {
	m.saved.Wide = m.wide
	return m.fx.save(m.saved)
}

// cluster returns the key under which orders and filters are remembered.
func (m *Model) cluster() string {
	if m.o.Cluster != "" {
		return m.o.Cluster
	}
	return m.o.Source.Title()
}

// colour applies and saves a theme chosen on the screen. A theme set for this run, by a
// flag or a variable, is not saved.
func (m *Model) colour(name string) tea.Cmd {
	m.colours, m.saved.Theme = name, name
	m.recolour()
	return m.keep()
}

func (m *Model) nextTheme() tea.Cmd {
	names := draw.Themes()
	keep := m.colour(names[(slices.Index(names, m.colours)+1)%len(names)])
	says := "theme " + m.colours
	if !m.term.Colour && m.colours != draw.Mono {
		says += " (no colours on this terminal)"
	}
	return tea.Batch(m.say(draw.Info, says), keep)
}

func (m *Model) pause() tea.Cmd {
	m.paused = !m.paused
	m.src.Pace(watch.Pace{Paused: m.paused})
	if _, ok := m.recording(); ok && m.paused {
		return m.say(draw.Info, "recording paused")
	}
	if m.paused {
		return m.say(draw.Info, "paused")
	}
	m.view = m.o.Source.View()
	return tea.Batch(m.say(draw.Info, "resumed"), m.tick(), m.page().Update(m.context(), pages.Changed{}))
}

// pace selects the next longer or shorter interval.
func (m *Model) pace(step int) tea.Cmd {
	if _, ok := m.recording(); ok {
		keys := m.key1(keymap.PlaySlower) + " and " + m.key1(keymap.PlayFaster)
		return m.say(draw.Faint, "the pace of a recording is fixed: "+keys+" change its speed")
	}
	at := 0
	for i, d := range intervals {
		if d <= m.interval {
			at = i
		}
	}
	at = min(max(at+step, 0), len(intervals)-1)
	m.interval = intervals[at]
	m.src.Pace(watch.Pace{Interval: m.interval, Paused: m.paused})
	return m.say(draw.Info, "every "+short(m.interval))
}

// shownKeys returns the keys that work here.
func (m *Model) shownKeys() keymap.Map {
	if _, ok := m.recording(); ok {
		return m.keys
	}
	return m.keys.Live()
}

func onOff(what string, on bool) string {
	if on {
		return what + ": on"
	}
	return what + ": off"
}

func digitTitles() []string {
	var out []string
	for _, s := range digits() {
		out = append(out, s.title)
	}
	return out
}

// copy puts names on the terminal's clipboard.
func (m *Model) copy(names []string) tea.Cmd {
	const most = 64 << 10 // terminals refuse more
	text := strings.Join(names, "\n")
	switch {
	case text == "":
		return m.say(draw.Faint, "nothing to copy")
	case len(text) > most:
		return m.say(draw.Warn, "too much for the clipboard: mark fewer rows, or export")
	}
	says := "copied " + names[0]
	if len(names) > 1 {
		says = "copied " + human.Plural(len(names), "name", "names")
	}
	return tea.Batch(pages.Copy(names...), m.say(draw.Good, says))
}
