package app

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
)

// begin opens an input line at the bottom.
func (m *Model) begin(to mode, text string) {
	m.mode, m.problem, m.picked = to, "", 0
	m.input.Set(text)
	m.typed()
}

// typed applies the typed text. A filter takes effect at once; while it is invalid, the
// last valid one stays in effect.
func (m *Model) typed() {
	switch m.mode {
	case filtering:
		m.problem = ""
		if l := m.list(); l != nil {
			if err := l.SetFilter(m.input.Text()); err != nil {
				m.problem = err.Error()
			}
		}
	case choosing:
		m.found = completions(m.choices(), m.input.Text())
		m.picked = min(m.picked, max(len(m.found)-1, 0))
		if m.picked <= 0 && len(m.found) > 0 && m.found[0].Weak {
			m.picked = nonePicked
		} else {
			m.picked = max(m.picked, 0)
		}
	}
}

// nonePicked is while no choice begins like the typed text: enter takes none.
const nonePicked = -1

func (m *Model) filterKey(key, text string) tea.Cmd {
	switch key {
	case "enter":
		if m.problem == "" { // the line shows the problem
			m.mode = browsing
			m.remember()
		}
		return nil
	case "esc":
		m.mode = browsing
		if l := m.list(); l != nil {
			_ = l.SetFilter(m.before) // it was in use, so it is valid
		}
		return nil
	case "ctrl+l":
		m.input.Set("")
		m.typed()
		return nil
	case "up", "down", "pgup", "pgdown":
		return m.do(m.keys.Action(key, nil), key)
	}
	if m.input.Key(key, text) {
		m.typed()
	}
	return nil
}

func (m *Model) sortKey(key string) tea.Cmd {
	m.mode = browsing
	l := m.list()
	if l == nil {
		return nil
	}
	for _, k := range l.SortMenu() {
		if k.Key == key {
			l.SortBy(k.Column)
			m.remember()
		}
	}
	return nil
}

func (m *Model) paletteKey(key, text string) tea.Cmd {
	switch key {
	case "esc":
		m.mode = browsing
		return nil
	case "up", "ctrl+p", "shift+tab":
		m.picked = max(m.picked-1, 0)
		return nil
	case "down", "ctrl+n":
		m.picked = min(m.picked+1, max(len(m.found)-1, 0))
		return nil
	case "tab":
		m.complete()
		return nil
	case "enter":
		m.mode = browsing
		if m.picked >= 0 && m.picked < len(m.found) {
			return m.choose(m.found[m.picked])
		}
		typed := strings.TrimSpace(m.input.Text())
		if typed == "" {
			return nil
		}
		var names []string
		for _, c := range m.choices() {
			names = append(names, c.Name)
		}
		return m.say(draw.Warn, "no match for "+typed+didYouMean(typed, names))
	}
	if m.input.Key(key, text) {
		m.picked = 0
		m.typed()
	}
	return nil
}

// complete completes the typed text to the picked choice, or to the next one if it is already there.
func (m *Model) complete() {
	for _, c := range m.found[min(max(m.picked, 0), len(m.found)):] {
		if to := c.Completion(); !strings.HasPrefix(m.input.Text(), to) {
			m.input.Set(to)
			m.typed()
			return
		}
	}
}

// didYouMean suggests the known name closest to the typed one, "" if none is close.
func didYouMean(typed string, known []string) string {
	if near := query.Near(typed, known); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// choices returns the palette's entries: screens, commands, then nodes.
func (m *Model) choices() []choice {
	out := make([]choice, 0, len(m.view.Nodes)+32)
	for _, s := range digits() {
		c := choice{Kind: ofScreen, Name: strings.ToLower(s.title), Title: s.says}
		if c.Name != s.name {
			c.Also = s.name
		}
		out = append(out, c)
	}
	for _, c := range commands {
		if c.name == "q" && m.input.Text() != c.name {
			continue // an alias of quit, for those used to it
		}
		out = append(out, choice{Kind: ofCommand, Name: c.name, Title: c.title, Argument: c.argument})
	}
	out = append(out, m.contextChoices()...)
	for _, t := range draw.Themes() {
		out = append(out, choice{Kind: ofCommand, Name: "theme " + t, Title: "colours"})
	}
	out = append(out, m.podChoices()...)
	for _, n := range m.view.Nodes {
		out = append(out, choice{Kind: ofObject, Name: n.Metadata.Name, Title: n.Status()})
	}
	return out
}

// podChoices are the pods that begin like the argument of the command pod.
func (m *Model) podChoices() (out []choice) {
	typed, ok := strings.CutPrefix(m.input.Text(), podCommand+" ")
	if !ok {
		return nil
	}
	namespace, name, given := strings.Cut(strings.TrimSpace(typed), "/")
	if !given {
		namespace, name = "", namespace
	}
	for _, p := range m.view.PodsNamed(namespace, name, mostChoices) {
		out = append(out, choice{Kind: ofPod, Name: podCommand + " " + p.Namespace + "/" + p.Name, Title: p.Node})
	}
	return out
}

const podCommand = "pod"

// command is a command of the palette.
type command struct {
	name, title string
	argument    bool
	run         func(m *Model, argument string) tea.Cmd
}

var commands = []command{
	{"quit", "quit cnictl", false, func(m *Model, _ string) tea.Cmd { return m.quit() }},
	{"q", "quit", false, func(m *Model, _ string) tea.Cmd { return m.quit() }},
	{"pause", "pause or resume reading", false, func(m *Model, _ string) tea.Cmd { return m.pause() }},
	{"filter", "filter the table: filter TEXT", true, (*Model).filterTo},
	{"sort", "sort the table: sort -ip,node", true, (*Model).sortTo},
	{"interval", "time between samples: interval 10s", true, (*Model).intervalTo},
	{"node", "go to a node: node NAME", true, (*Model).nodeNamed},
	{podCommand, "go to a pod: pod NAMESPACE/NAME", true, (*Model).podNamed},
	{"ip", "find what has an address: ip 10.0.1.22", true, (*Model).holderOf},
	{"export", "export the table: export csv, json or text", true, func(m *Model, how string) tea.Cmd { return m.export(how) }},
}

func (m *Model) choose(c choice) tea.Cmd {
	switch c.Kind {
	case ofScreen:
		return m.jump(screenNamed(c.Name))
	case ofObject:
		return m.open(pages.Open{Screen: "node", Node: c.Name})
	}
	if c.Name == ctxCommand {
		return m.listContexts()
	}
	if name, ok := strings.CutPrefix(c.Name, ctxCommand+" "); ok {
		return m.switchTo(name)
	}
	if name, ok := strings.CutPrefix(c.Name, "theme "); ok {
		return m.colour(name)
	}
	line := m.input.Text()
	if c.Kind == ofSearch || c.Kind == ofPod {
		line = c.Name
	}
	name, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	if c.Kind == ofCommand {
		name = c.Name
	}
	for _, x := range commands {
		if x.name == name {
			return x.run(m, strings.TrimSpace(argument))
		}
	}
	return nil
}

func (m *Model) filterTo(text string) tea.Cmd {
	return m.onList(func(l components.List) error { return l.SetFilter(text) })
}

func (m *Model) sortTo(text string) tea.Cmd {
	return m.onList(func(l components.List) error { return l.SetOrder(text) })
}

// onList changes the table. If that fails, the returned command shows why.
func (m *Model) onList(set func(components.List) error) tea.Cmd {
	l := m.list()
	if l == nil {
		return m.say(draw.Warn, "this screen has no table")
	}
	if err := set(l); err != nil {
		return m.say(draw.Bad, err.Error())
	}
	m.remember()
	return nil
}

func (m *Model) intervalTo(text string) tea.Cmd {
	d, err := time.ParseDuration(text)
	if err != nil || d < intervals[0] {
		return m.say(draw.Bad, "the interval must be "+short(intervals[0])+" or more, such as 10s")
	}
	m.interval = min(d, time.Hour)
	m.src.Pace(watch.Pace{Interval: m.interval, Paused: m.paused})
	return m.say(draw.Info, "every "+short(m.interval))
}
