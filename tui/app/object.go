package app

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"sigs.k8s.io/yaml"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// objectPage shows one object as YAML or, after a key press, JSON.
type objectPage struct {
	value any
	name  string
	json  bool
	view  components.LogView
}

// object opens the object under the cursor, or switches an open one between YAML and JSON.
func (m *Model) object() tea.Cmd {
	if top, ok := m.page().(*objectPage); ok {
		top.json = !top.json
		top.fill()
		return nil
	}
	value := m.page().Row(m.context())
	if value == nil {
		return m.say(draw.Faint, "nothing selected")
	}
	p := &objectPage{value: value, name: m.page().Title()}
	if l := m.list(); l != nil && len(l.Identities()) > 0 {
		p.name = show.Safe(l.Identities()[0])
	}
	p.fill()
	return m.overlay(p)
}

func (p *objectPage) text() string {
	if p.json {
		return string(jsonValue(p.value))
	}
	data, err := document.Marshal(p.value)
	if err == nil {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (p *objectPage) fill() {
	var lines []components.LogLine
	for line := range strings.Lines(p.text()) {
		line = show.Safe(strings.TrimRight(line, "\n"))
		parts := []draw.Span{{Role: draw.Text, Text: line}}
		if name, value, ok := strings.Cut(line, ": "); ok {
			parts = []draw.Span{{Role: draw.Key, Text: name + ": "}, {Role: draw.Text, Text: value}}
		} else if strings.HasSuffix(line, ":") { // of a list or an object below
			parts[0].Role = draw.Key
		}
		lines = append(lines, components.LogLine{Parts: parts})
	}
	p.view = components.LogView{Wrap: p.view.Wrap}
	p.view.Append(lines...)
	p.view.Do(keymap.First)
}

func (*objectPage) Name() string                    { return "object" }
func (p *objectPage) Title() string                 { return p.name }
func (*objectPage) Focus(pages.Context) watch.Focus { return watch.Focus{} }
func (p *objectPage) Row(pages.Context) any         { return p.value }

func (p *objectPage) Update(_ pages.Context, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pages.Mouse:
		p.view.Wheel(msg.Wheel)
	case pages.Do:
		switch msg.Action {
		case keymap.Wrap:
			p.view.Wrap = !p.view.Wrap
		case keymap.CopyText:
			return pages.Copy(strings.Split(p.text(), "\n")...)
		default:
			p.view.Do(msg.Action)
		}
	}
	return nil
}

func (p *objectPage) Lines(c pages.Context) []string {
	return p.view.Lines(c.Style(), c.Width, c.Height)
}
