// Package logs is the screen of daemon logs, daemon state changes and Kubernetes events, of
// one node or several, in order of time.
package logs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
)

// Limits of the screen.
const (
	maxLines  = components.LogLines    // of all nodes
	mostNodes = 8                      // most nodes followed if none was chosen
	firstRead = introspect.MaxLogLines // lines of each log at first; some are access or debug lines
)

// Model is the screen.
type Model struct {
	node  string // "" = several
	pod   string // whose lines are shown, "" = all
	eni   string
	ip    string
	tails []*tail
	also  int // nodes that are not followed
	names pages.NodeNames
	fleet uint64 // generation of the view that names was learned from

	all     []*line
	seq     uint64
	dropped uint64
	fresh   int // lines that arrived while paused

	view    components.LogView
	columns []query.Column[*line]
	filter  *query.Filter[*line]
	text    string
	level   logline.Level
	access  bool // show introspection requests too
	each    bool // show repeated failures line by line
	grouped int  // lines that are left out because others say the same
	faults  bool
	paused  bool
	stale   bool // the view must be rebuilt from all
	now     time.Time
}

// New opens the screen for one node or several, optionally for one pod, interface or
// address.
func New(o pages.Open) pages.Page {
	m := &Model{node: o.Node, pod: o.Pod, eni: o.ENI, ip: o.IP, level: logline.Info}
	m.columns = m.newColumns()
	if o.Node != "" {
		m.follow([]string{o.Node})
	}
	return m
}

func (m *Model) follow(names []string) {
	m.tails = nil
	for _, name := range names {
		m.tails = append(m.tails, newTail(name, m.pod+m.eni+m.ip))
	}
}

// restart discards what was read, to read it again.
func (m *Model) restart() {
	var names []string
	for _, t := range m.tails {
		names = append(names, t.docs.Node)
	}
	m.follow(names)
	m.all, m.dropped, m.fresh, m.stale = nil, 0, 0, true
	m.show()
}

// choose picks the nodes to follow if none was requested: the worst ones with a daemon. Even
// if a node cannot be read, Kubernetes may have events of it.
func choose(v *store.View) (names []string, also int) {
	if v == nil {
		return nil, 0
	}
	var can []*store.Node
	for _, n := range v.Nodes {
		if n.State != document.StateNoDaemon {
			can = append(can, n)
		}
	}
	slices.SortStableFunc(can, func(a, b *store.Node) int { return cmp.Compare(rank(a), rank(b)) })
	for _, n := range can[:min(len(can), mostNodes)] {
		names = append(names, n.Metadata.Name)
	}
	return names, len(can) - len(names)
}

func rank(n *store.Node) int {
	if n.Severity == "" {
		return 3
	}
	return n.Severity.Rank()
}

// take adds new lines of a node.
func (m *Model) take(t *tail, d watch.Detail) {
	var more []*line
	for _, l := range t.take(d) {
		m.seq++
		l.seq = m.seq
		more = append(more, &l)
	}
	if len(more) == 0 {
		return
	}
	m.all = append(m.all, more...)
	sortLines(m.all)
	m.all = fold(m.all, slices.MinFunc(more, func(a, b *line) int { return a.At.Compare(b.At) }).At)
	if over := len(m.all) - maxLines; over > 0 {
		m.all = append(m.all[:0], m.all[over:]...)
		m.dropped += uint64(over)
	}
	m.stale = true
	if m.paused {
		m.fresh += len(more)
	}
}

// wanted reports whether a line passes the screen's selection.
func (m *Model) wanted(l *line) bool {
	switch {
	case l.access && !m.access, severity(l) < m.level:
		return false
	case m.faults && (!l.Known || l.Level < logline.Warn):
		return false
	case m.pod != "" && !about(l, m.pod, l.ref.Namespace+"/"+l.ref.Name):
		return false
	case m.eni != "" && !about(l, m.eni, l.eni):
		return false
	case m.ip != "" && !about(l, m.ip, l.IP):
		return false
	}
	return m.filter.Empty() || m.filter.Match(l)
}

// severity returns a line's level. Text without one, such as a panic, counts as info.
func severity(l *line) logline.Level {
	if !l.Known {
		return logline.Info
	}
	return l.Level
}

func about(l *line, what, member string) bool {
	return member == what || strings.Contains(l.Text, what) || strings.Contains(l.Rest, what)
}

// shown returns the lines that pass the selection.
func (m *Model) shown() []*line {
	var out []*line
	for _, l := range m.all {
		if m.wanted(l) {
			out = append(out, l)
		}
	}
	return out
}

// show rebuilds the view if it is stale.
func (m *Model) show() {
	if !m.stale {
		return
	}
	m.stale, m.fresh, m.grouped = false, 0, 0
	shown, times := m.shown(), map[*line]repeats{}
	if !m.each {
		all := len(shown)
		shown, times = group(shown)
		m.grouped = all - len(shown)
	}
	var lines []components.LogLine
	nodes := m.colours()
	for _, l := range shown {
		lines = append(lines, lineOf(l, times[l], m.now, nodes, m.names))
	}
	m.view.Set(lines)
}

// colours returns the colours of the nodes' names, nil if there is only one.
func (m *Model) colours() map[string]draw.Role {
	if len(m.tails) < 2 {
		return nil
	}
	var names []string
	for _, t := range m.tails {
		names = append(names, shownNode(t.docs.Node))
	}
	return draw.NodeRoles(names)
}

// Name implements pages.Page.
func (m *Model) Name() string { return "logs" }

// Title is the breadcrumb.
func (m *Model) Title() string {
	for _, s := range []string{m.pod, m.ip, m.eni, m.node} {
		if s != "" {
			return "Logs " + s
		}
	}
	return "Logs"
}

// Focus samples the requested node first.
func (m *Model) Focus(pages.Context) watch.Focus { return watch.Focus{Open: m.node} }

// Row is the line under the cursor.
func (m *Model) Row(pages.Context) any {
	at, ok := m.view.Line()
	if !ok {
		return nil
	}
	l := at.Value.(*line)
	return map[string]string{
		"time": l.At.UTC().Format(time.RFC3339Nano), "level": levelText(*l), "from": string(l.From), "node": l.Node, "kind": l.Kind,
		"pod": l.Pod, "eni": l.ENI, "address": l.IP, "text": l.Text, "rest": l.Rest,
	}
}

// List is the log, for the app's filter line and export.
func (m *Model) List() components.List { return list{m} }

// followed names the nodes whose lines are shown.
func (m *Model) followed() string {
	switch {
	case m.node != "":
		return m.node
	case len(m.tails) == 0:
		return "no node"
	case m.also > 0:
		return "The " + strconv.Itoa(len(m.tails)) + " worst of " + human.Plural(len(m.tails)+m.also, "node", "nodes")
	}
	return human.Plural(len(m.tails), "node", "nodes")
}
