package store

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/doctor/causes/catalogue"
)

// NewNode builds a Node from a single sample, for callers that read nodes once.
func NewNode(n document.NodeIPAM) *Node {
	at := time.Time{}
	if n.SampledAt != nil {
		at = *n.SampledAt
	}
	return next(nil, n, at)
}

// next builds a node from a sample that was taken, or failed, at the given time, and from its
// previous state.
func next(before *Node, n document.NodeIPAM, at time.Time) *Node {
	if before != nil && other(before.Object, n.Object) {
		before = nil
	}
	// A stale sample with a summary comes from a recording: it repeats an earlier state.
	out, answered := &Node{NodeIPAM: n}, n.Summary != nil && n.State != document.StateStale
	if before != nil {
		out.life = before.life
		out.carry(before, at)
	} else {
		out.life = new(life)
	}
	if out.Known = out.Summary != nil; out.Known {
		out.sum()
	}
	out.judge(at)
	out.remember(before, at, answered)
	out.place(before, at, answered)
	out.Changed = at
	if before != nil && out.same(before) {
		out.Changed = before.Changed
	}
	return out
}

// other reports that the name now belongs to another machine.
func other(before, now *document.NodeObject) bool {
	return before != nil && now != nil && before.InstanceID != "" && now.InstanceID != "" && before.InstanceID != now.InstanceID
}

// carry keeps the previous values of what a failed sample lacks.
func (n *Node) carry(before *Node, at time.Time) {
	if n.Object == nil {
		n.Object = before.Object
	}
	if n.Summary != nil || before.Summary == nil || n.State == document.StateNoDaemon {
		return
	}
	n.Summary, n.NodeIPAM.ENIs, n.Source, n.SampledAt = before.Summary, before.NodeIPAM.ENIs, before.Source, before.SampledAt
	if n.Via == "" {
		n.Via = before.Via
	}
	if n.State == document.StateAPIOnly && n.Error == nil {
		// Not a failure: Kubernetes reported a change of the node.
		n.State, n.Error, n.LatencySeconds = before.State, before.Error, before.LatencySeconds
		return
	}
	n.State = document.StateStale
}

// sum adds up the cards.
func (n *Node) sum() {
	// A daemon that reports no card has reported nothing about its pool.
	first := total{known: len(n.Summary.Cards) > 0}
	limit, eniLimit, capacity, scale, room := first, first, first, first, first
	cooling, enis, prefixes := first, first, first
	for _, c := range n.Summary.Cards {
		n.Assigned += c.Assigned
		n.Free += c.Free
		n.Held += c.Total
		most, _ := fleet.Most(n.NodeIPAM, c)
		capacity.add(most)
		most, _ = fleet.Capacity(n.NodeIPAM, c)
		scale.add(most)
		room.add(fleet.Room(n.NodeIPAM, c))
		cooling.add(c.Cooling)
		enis.add(c.ENIs)
		prefixes.add(c.Prefixes)
		limit.add(c.AddressLimit)
		eniLimit.add(c.ENILimit)
	}
	n.Cooling, n.ENIs, n.Prefixes = cooling.value(), enis.value(), prefixes.value()
	n.Limit, n.ENILimit, n.Room = limit.value(), eniLimit.value(), room.value()
	n.capacity, n.scale = capacity.value(), scale.value()
}

// Well reports that the node was read and nothing is wrong with it, except perhaps over-warm.
func (n *Node) Well() bool {
	return n.Word == fleet.CodeOK || n.Word == WordOverWarm
}

// Status is the state for people: the doctor's code of the worst problem. Upstream's ok is marked,
// as upstream reports less. Documents and CSV have Code and Word, which never change.
func (n *Node) Status() string {
	if n.Error != nil && n.State != document.StateLive {
		if word, found := strings.CutSuffix(n.Word, ": "+string(n.Error.Reason)); found {
			return word + ": " + fleet.ReasonText(n.Error.Reason)
		}
	}
	worst, found := n.Worst()
	switch {
	case !found:
		return n.RawStatus()
	case n.Summary != nil && n.Summary.WaitingADDs != nil && *n.Summary.WaitingADDs > 0:
		return worst.Name() + ", " + strconv.Itoa(*n.Summary.WaitingADDs) + " wait"
	}
	return worst.Name()
}

// Worst is the worst problem of a node that was read, a cause before what merely follows from one; false
// if nothing is wrong.
func (n *Node) Worst() (worst document.Problem, found bool) {
	worst.Effect = document.SeverityInfo
	for _, p := range n.Problems {
		worse := p.Effect.Rank() - worst.Effect.Rank()
		if worse < 0 || worse == 0 && observed(worst) && !observed(p) {
			worst = p
		}
	}
	return worst, n.State == document.StateLive && worst.Effect != document.SeverityInfo
}

// observed reports that a problem is what the doctor sees, not a cause.
func observed(p document.Problem) bool {
	return strings.HasPrefix(p.Finding, catalogue.GroupObserved+"/")
}

// RawStatus is Status with the reason code of a failed read, as in CSV.
func (n *Node) RawStatus() string {
	if n.Word == fleet.CodeOK && n.Source == document.SourceV1 {
		return fleet.CodeOK + " (upstream)"
	}
	return n.Word
}

// Label returns a label of the Node object.
func (n *Node) Label(name string) (string, bool) {
	if n.Object == nil {
		return "", false
	}
	v, ok := n.Object.Labels[name]
	return v, ok
}

// Document returns the node as cnictl prints it.
func (n *Node) Document() document.NodeDocument {
	return document.NodeDocument{NodeIPAM: n.NodeIPAM, Status: n.Code, Problems: append([]document.Problem{}, n.Problems...)}
}

// judge sets the problems and the state.
func (n *Node) judge(at time.Time) {
	n.Problems = fleet.Problems(n.NodeIPAM)
	n.Word, n.Code = fleet.WordOf(n.NodeIPAM, n.Problems), fleet.StatusCode(n.NodeIPAM, n.Problems)
	if n.State == document.StateStale && n.SampledAt != nil && at.After(*n.SampledAt) {
		n.Word = "stale " + human.Age(at.Sub(*n.SampledAt)) + strings.TrimPrefix(n.Word, "stale")
	}
	if n.wasteful() {
		n.Word, n.Code = WordOverWarm, WordOverWarm
	}
	for _, p := range n.Problems {
		if n.Severity == "" || p.Effect.Rank() < n.Severity.Rank() {
			n.Severity = p.Effect
		}
	}
}

// remember updates the rates and the history.
func (n *Node) remember(before *Node, at time.Time, answered bool) {
	if before != nil {
		n.History, n.counters = before.History, before.counters
	}
	switch {
	case answered:
		var rates *Rates
		if before != nil {
			rates = before.Rates
		}
		n.Rates, n.counters = countersOf(n.NodeIPAM).rates(n.counters, rates)
		if !at.IsZero() {
			n.History = n.History.add(point(n, at))
		}
	case n.Error != nil && len(n.History) > 0 && !at.IsZero():
		n.History = n.History.add(gap(at))
	}
}

// same reports that nothing but the time of the sample changed.
func (n *Node) same(before *Node) bool {
	return n.State == before.State && n.Word == before.Word && n.Source == before.Source &&
		reflect.DeepEqual(n.Summary, before.Summary) && reflect.DeepEqual(n.Error, before.Error) && reflect.DeepEqual(n.Object, before.Object)
}

// total adds known values; one unknown term makes it unknown.
type total struct {
	n     int
	known bool
}

func (t *total) add(v *int) {
	if v == nil {
		t.known = false
		return
	}
	t.n += *v
}

func (t *total) value() *int {
	if !t.known {
		return nil
	}
	v := t.n
	return &v
}
