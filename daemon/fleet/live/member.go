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

// member is one node and what was learned about it. Live.mu guards everything except the
// reader, which is safe by itself, and the fields that mu guards.
type member struct {
	target fleet.Target
	reader *fleet.Reader      // nil if its target is invalid
	cancel context.CancelFunc // cancels the last read

	source    string              // of the last answer; "" if none yet
	summary   *introspect.Summary // the latest
	noEvents  bool                // it does not serve events
	enisAsked time.Time

	unreachable atomic.Pointer[string] // why this read could not reach the API server; nil if it could

	// The addresses that upstream last reported, while the node is open: upstream is not asked
	// again in between.
	enis   []introspect.NodeENI
	enisAt time.Time

	mu     sync.Mutex           // guards all below and the order of rows; Live.mu may be held
	gone   bool                 // it left or was replaced: no more rows
	object *document.NodeObject // the latest from Kubernetes
	known  bool                 // it has answered at least once; until then:
	state  document.State       // of the latest row
	why    *document.NodeError
}

// learn remembers what a sample says about the node.
func (m *member) learn(out document.NodeIPAM, open bool, now time.Time) {
	if out.Summary == nil {
		return
	}
	m.source, m.summary = out.Source, out.Summary
	if m.enis = nil; open && out.Source == document.SourceV1 && out.ENIs != nil {
		m.enis, m.enisAt = out.ENIs, now
	}
}

// same reports whether t is still the same target, even if its details changed.
func (m *member) same(t fleet.Target) bool {
	return m.target.Key == t.Key && m.target.Address == t.Address && m.target.Via == t.Via &&
		(m.target.Absent == nil) == (t.Absent == nil) && (m.target.Dial == nil) == (t.Dial == nil)
}
