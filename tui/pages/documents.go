package pages

import (
	"hash/fnv"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Documents holds documents of one node that are refreshed while they are shown. If a later
// reading fails, the last one stays and ages.
type Documents struct {
	Node  string
	Last  watch.Detail                      // the newest of each
	Read  map[watch.Want]time.Time          // when each was read
	Error map[watch.Want]document.NodeError // why the last reading of each failed

	id     uint64
	flying watch.Want
	asked  map[watch.Want]time.Time
}

// UnreadAtOnce is how many unread nodes are requested as if they were visible.
const UnreadAtOnce = 64

// UpstreamPace is the shortest time between two readings of an upstream node, which logs
// a line for each.
const UpstreamPace = watch.UpstreamMin

// answerTimeout is the time after which an answer is no longer expected.
const answerTimeout = 30 * time.Second

// JustMoved reports whether the cursor has been on a node for too short a time to read its
// documents. Nodes that the cursor passes over are not asked, unless they are recorded.
func JustMoved(c Context, since time.Time) bool {
	return !c.Recorded && c.Clock.Sub(since) < time.Second
}

// NewDocuments makes documents of a node. The screen and the object distinguish this page's
// answers from those of other pages.
func NewDocuments(screen, node, object string) Documents {
	h := fnv.New64a()
	for _, s := range []string{screen, node, object} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return Documents{
		Node: node, id: h.Sum64(), Read: map[watch.Want]time.Time{},
		Error: map[watch.Want]document.NodeError{}, asked: map[watch.Want]time.Time{},
	}
}

// Ask requests documents, unless they are outstanding or were requested less than every
// ago. With every 0, all but the outstanding ones are requested.
func (d *Documents) Ask(c Context, want watch.Want, every time.Duration, q watch.Query) tea.Cmd {
	now := c.Clock // not Now: a paused recording is read too
	var due watch.Want
	for w := range want.Each() {
		at, asked := d.asked[w]
		waits := d.flying&w != 0 && now.Sub(at) < answerTimeout
		if waits || asked && every > 0 && now.Sub(at) < every && !now.Before(at) {
			continue
		}
		due |= w
	}
	if due == 0 || d.Node == "" && due != watch.WantClusterPods {
		return nil
	}
	for w := range due.Each() {
		d.asked[w] = now
	}
	d.flying |= due
	ask := Read{ID: d.id, Node: d.Node, Want: due, Query: q}
	return func() tea.Msg { return ask }
}

// Take stores an answer. It returns false if the answer is for another page.
func (d *Documents) Take(m Loaded) bool {
	if m.ID != d.id {
		return false
	}
	d.flying &^= m.Want
	for w := range m.Want.Each() {
		if e, failed := failure(m.Detail.Errors, w); failed {
			d.Error[w] = e
			continue
		}
		delete(d.Error, w)
		d.Read[w] = m.Detail.At
		d.Last.At = m.Detail.At
		d.Last.Take(w, &m.Detail)
	}
	return true
}

// failure finds why a document could not be read; one error may cover several.
func failure(all map[watch.Want]document.NodeError, w watch.Want) (document.NodeError, bool) {
	if e, ok := all[w]; ok {
		return e, true
	}
	for several, e := range all {
		if several&w != 0 {
			return e, true
		}
	}
	return document.NodeError{}, false
}

// Has reports whether a document was ever read.
func (d *Documents) Has(w watch.Want) bool { _, ok := d.Read[w]; return ok }

// ENIs returns the node's ENIs as last read. An upstream node is rarely asked, but its
// samples have the ENIs: these are used until it answers.
func (d *Documents) ENIs(v *store.View) []introspect.NodeENI {
	if d.Last.ENIs != nil || v == nil {
		return d.Last.ENIs
	}
	if n := v.Node(d.Node); n != nil {
		return n.NodeIPAM.ENIs
	}
	return nil
}

// Upstream reports whether a node runs the upstream daemon, or one that serves no more.
func Upstream(n *store.Node) bool { return n != nil && n.Source == document.SourceV1 }

// PodsPace returns how often to list the pods of all nodes, the largest answer requested from the API server.
func (d *Documents) PodsPace() time.Duration {
	if k := d.Last.ClusterPods; k != nil && len(k.Pods) > 1000 {
		return time.Minute
	}
	return 15 * time.Second
}

// Pace returns how often to ask a node for documents that are shown.
func Pace(c Context, n *store.Node) time.Duration {
	every := 3 * time.Second
	if c.Source != nil {
		every = max(every, c.Source.Stats().Interval)
	}
	if Upstream(n) {
		every = max(every, UpstreamPace)
	}
	return every
}
