// Package whatif is the screen that predicts what nodes would hold with other settings, and
// what that would cost, for one node, several or all. The simulation runs in the background,
// a few nodes at a time, and once for each combination of settings and number of pods.
package whatif

import (
	"slices"
	"strconv"
	"strings"
	"time"

	engine "cnictl/capacity/whatif"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Model is the screen.
type Model struct {
	opened pages.Open
	title  string
	in     func(*store.Node) bool
	set    changes
	table  *components.Table[*row]
	scroll components.Scroll
	frame  components.Frame

	several bool // the rows are those for more than one node

	sim   *simulation // owned by the command while it runs
	busy  bool
	taken time.Time // when the nodes were last taken, by Context.Clock
	view  uint64    // generation of the view from which they were taken
	at    time.Time // Context.Now at that time
	last  outlook
}

// changes are the settings that the user changed, with values as in the environment or, where nodes
// differ, as what each node's own value changes by: "+1".
type changes map[string]string

// to returns settings with the changes applied.
func (c changes) to(s engine.Settings) engine.Settings {
	for _, k := range engine.Knobs() {
		text, ok := c[k.Name]
		switch by, each := each(text); {
		case each:
			k.Step(&s, by)
		case ok:
			_ = k.Set(&s, text) // a valid value of this setting
		}
	}
	return s.Possible()
}

// each returns by how much every node's own value changes, false if all get the same value. No setting
// has a value with a sign.
func each(text string) (by int, ok bool) {
	if text == "" || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	by, err := strconv.Atoi(text)
	return by, err == nil
}

// differs reports whether a change is of each node's own value, which no command and no patch for all
// nodes can say.
func (c changes) differs() bool {
	for _, text := range c {
		if _, ok := each(text); ok {
			return true
		}
	}
	return false
}

// equal reports whether c and d are the same.
func (c changes) equal(d changes) bool {
	if len(c) != len(d) {
		return false
	}
	for name, text := range c {
		if other, ok := d[name]; !ok || other != text {
			return false
		}
	}
	return true
}

// row is a setting with its current and changed value.
type row struct {
	place          int
	name           string
	today, changed string
	idle           string // why it has no effect
}

const maxPods = "maxPods"

// order is the order of the settings on the screen. The targets come first.
var order = []string{
	"WARM_ENI_TARGET", "WARM_IP_TARGET", "MINIMUM_IP_TARGET", "WARM_PREFIX_TARGET", maxPods, "MAX_ENI",
	"ENABLE_PREFIX_DELEGATION", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "ENABLE_POD_ENI", "IP_COOLDOWN_PERIOD",
}

// New opens the screen for one node, several or all.
func New(o pages.Open) pages.Page {
	m := &Model{opened: o, set: changes{}, sim: newSimulation()}
	m.title, m.in = o.Scope()
	m.table = components.NewTable(components.TableOptions[*row]{
		Columns: []query.Column[*row]{
			{Name: "setting", Header: "SETTING", Title: "variable of the daemon's environment; maxPods is kubelet's", Least: 22,
				Text: func(r *row) string { return r.name }},
			{Name: "today", Header: "TODAY", Title: "current value; lowest and highest if nodes differ", Right: true,
				Text: func(r *row) string { return r.today }},
			{Name: "changed", Header: "CHANGED", Title: "value that is tried", Right: true, Text: func(r *row) string { return r.changed }},
			{Name: "note", Header: "NOTE", Title: "why the pool ignores it", Drop: 1, Text: func(r *row) string { return r.idle }},
		},
		ID: func(r *row) string { return strconv.Itoa(r.place) }, // keeps them in order
		Role: func(r *row, column string) draw.Role {
			switch {
			case column == "changed" && r.changed != r.today:
				return draw.Accent
			case column != "setting", r.idle != "":
				return draw.Faint
			}
			return draw.Text
		},
		Empty: "No nodes that can be simulated.",
	})
	m.frame.Bodies = []components.Body{m.table, &m.scroll}
	return m
}

// Name implements pages.Page.
func (*Model) Name() string { return "whatif" }

// Title is the breadcrumb.
func (m *Model) Title() string { return "What if (" + m.title + ")" }

// Focus samples the node.
func (m *Model) Focus(pages.Context) watch.Focus { return watch.Focus{Open: m.opened.Node} }

// Row is the node, if there is only one.
func (m *Model) Row(c pages.Context) any {
	if n := c.View.Node(m.opened.Node); n != nil {
		return n.Document()
	}
	return nil
}

// fill writes the current and the changed values into the table. The order of rows is
// fixed.
func (m *Model) fill(c pages.Context) {
	rows := m.table.Rows()
	if several := m.last.nodes > 1; len(m.last.today) > 0 && (len(rows) == 0 || several != m.several) {
		m.several, rows = several, nil
		for place, name := range order {
			if name == maxPods && several { // kubelet's, by instance type: no value suits all
				delete(m.set, name)
				continue
			}
			rows = append(rows, &row{place: place, name: name})
		}
		m.table.SetRows(rows, c.Clock)
	}
	for _, r := range rows {
		r.today, r.idle = m.last.today[r.name].text(), m.last.idle[r.name]
		r.changed = r.today
		if text, ok := m.set[r.name]; ok {
			r.changed = text
			if _, ok := each(text); ok {
				r.changed = "each " + text
			}
		}
	}
}

// spread summarises the values that nodes have for a setting.
type spread struct {
	least, most int    // if the setting is a number
	usual       string // the most frequent value
	same        bool
}

func (s spread) text() string {
	switch {
	case s.usual == "":
		return show.Unknown
	case s.same:
		return s.usual
	case s.least < s.most:
		return strconv.Itoa(s.least) + "-" + strconv.Itoa(s.most)
	}
	return "differs"
}

// named is how many nodes a command names at most.
const named = 20

// command returns the command that does the same without the screen, "" while nothing is changed
// or no command can say it.
func (m *Model) command() string {
	if len(m.set) == 0 || m.set.differs() {
		return ""
	}
	words := []string{"cnictl capacity whatif"}
	switch {
	case m.opened.Node != "":
		words = append(words, m.opened.Node)
	case m.title == pages.Everywhere:
		words = append(words, "--all")
	case len(m.last.names) <= named:
		words = append(words, strings.Join(m.last.names, " "))
	default:
		words = append(words, "NODE...")
	}
	for _, s := range m.settings() {
		words = append(words, "--set "+s.Name+"="+s.Value)
	}
	if n := m.last.nodes; n > 1 {
		words = append(words, "--rate "+strconv.Itoa(n)) // for all nodes together
	}
	return strings.Join(append(words, "--for 1h"), " ")
}

// settings returns the changed settings, in the order of the screen.
func (m *Model) settings() (out []engine.Setting) {
	for _, name := range order {
		if text, ok := m.set[name]; ok {
			out = append(out, engine.Setting{Name: name, Value: text})
		}
	}
	return out
}

// patch returns the patch for the DaemonSet, without kubelet's setting.
func (m *Model) patch() string {
	if m.set.differs() {
		return ""
	}
	return engine.DaemonSetPatch(slices.DeleteFunc(m.settings(), func(s engine.Setting) bool { return s.Name == maxPods }))
}
