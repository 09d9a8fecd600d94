package app

import (
	tea "charm.land/bubbletea/v2"

	"cnictl/tui/draw"
)

// contexts is the state of a switch to another context of the kubeconfig.
type contexts struct {
	connecting string // name of the context; "" = none
	switched   bool   // the screens end and reopen on the other cluster
}

// connected is the result of connecting to a context.
type connected struct {
	name string
	err  error
}

const ctxCommand = "ctx"

// contextChoices returns the palette's entries for the command and each context.
func (m *Model) contextChoices() []choice {
	out := []choice{{Kind: ofCommand, Name: ctxCommand, Title: "switch to another context of the kubeconfig"}}
	for _, name := range m.o.Contexts {
		title := "switch to this context"
		if name == m.o.Context {
			title = "current context"
		}
		out = append(out, choice{Kind: ofCommand, Name: ctxCommand + " " + name, Title: title})
	}
	return out
}

// listContexts opens the palette on the contexts, or shows why there are none.
func (m *Model) listContexts() tea.Cmd {
	if _, ok := m.recording(); ok {
		return m.say(draw.Warn, "a recording shows one cluster; to watch another: cnictl tui --context NAME")
	}
	if len(m.o.Contexts) == 0 {
		return m.say(draw.Warn, "no contexts: these nodes do not come from a kubeconfig")
	}
	m.begin(choosing, ctxCommand+" ")
	return nil
}

// switchTo connects to a context. The screens stay until the connection succeeds.
func (m *Model) switchTo(name string) tea.Cmd {
	switch {
	case m.contexts.connecting != "":
		return m.say(draw.Warn, "still connecting to "+m.contexts.connecting)
	case name == m.o.Context:
		return m.say(draw.Info, "already on context "+name)
	}
	m.contexts.connecting = name
	return tea.Batch(m.say(draw.Info, "connecting to "+name+" …"), m.fx.connect(name))
}

func (m *Model) connected(c connected) tea.Cmd {
	m.contexts.connecting = ""
	if c.err != nil {
		return m.say(draw.Bad, "still on "+m.o.Context+": "+c.err.Error())
	}
	m.contexts.switched = true
	return m.quit()
}
