package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// member is one node and what was learned of it. Live.mu guards all but the reader,
// which guards itself, and what mu does.
type member struct {
	target fleet.Target
	reader *fleet.Reader      // nil: its target cannot be read at all
	cancel context.CancelFunc // of the last reading

	source    string              // of the last answer; "" = none yet
	summary   *introspect.Summary // the last
	noEvents  bool                // it does not serve events
	enisAsked time.Time

	unreachable atomic.Pointer[string] // why the API server could not be reached in this reading; nil: it was

	// The addresses that upstream last reported, while the node is looked at: it is
	// not asked for them again in between.
	enis   []introspect.NodeENI
	enisAt time.Time

	mu     sync.Mutex           // guards all below, and the order in which its rows are put; taken with Live.mu held or without
	gone   bool                 // it left, or another took its place: nothing is put any more
	object *document.NodeObject // what Kubernetes reported last
	known  bool                 // it answered at some time; until then:
	state  document.State       // of the row that was put last
	why    *document.NodeError
}

// learn keeps what a sample has of the node.
func (m *member) learn(out document.NodeIPAM, open bool, now time.Time) {
	if out.Summary == nil {
		return
	}
	m.source, m.summary = out.Source, out.Summary
	if m.enis = nil; open && out.Source == document.SourceV1 && out.ENIs != nil {
		m.enis, m.enisAt = out.ENIs, now
	}
}

// same reports that a target is the one that is read already, with other news of it.
func (m *member) same(t fleet.Target) bool {
	return m.target.Key == t.Key && m.target.Address == t.Address && m.target.Via == t.Via &&
		(m.target.Absent == nil) == (t.Absent == nil) && (m.target.Dial == nil) == (t.Dial == nil)
}
