package node

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// decision is one change of the pool: an action with its outcome, or another event.
type decision struct {
	At   time.Time
	Kind string // of an event that is not an action, "" if the text says it
	Text string // safe to print
	End  string // of an action: done 1.7s, failed: …, in progress
	Role draw.Role
}

// actionKey identifies a daemon's action in progress. An ENI has one at a time.
type actionKey struct{ eni, reason string }

// decisionsOf joins the start of each action with its end, oldest first.
func decisionsOf(all []introspect.Event) []decision {
	var out []decision
	begun := map[actionKey]int{}
	for _, e := range all {
		key := actionKey{e.ENIID, e.Reason}
		switch e.Kind {
		case introspect.EventStarted:
			clear(begun) // actions of the previous daemon never end
		case introspect.EventActionStarted:
			begun[key] = len(out)
			out = append(out, decision{At: e.At, Text: action(e), End: "in progress", Role: draw.Accent})
			continue
		case introspect.EventActionDone, introspect.EventActionFailed:
			i, known := begun[key]
			if !known {
				break
			}
			delete(begun, key)
			out[i].End, out[i].Role = ended(e)
			continue
		}
		if ofPool(e.Kind) {
			d := decision{At: e.At, Kind: string(e.Kind), Text: inventory.EventLine(e), Role: pages.EventRole(e.Kind)}
			if d.Text == e.Kind.Title() { // it says the kind
				d.Kind, d.Text = "", strings.TrimPrefix(d.Text, "the ")
			}
			out = append(out, d)
		}
	}
	return out
}

// brief returns the events without the sentences that the verdict says.
func brief(all []introspect.Event, n *store.Node) []introspect.Event {
	out := slices.Clone(all)
	for i, e := range out {
		if e.Cause != "" && e.Message != "" && told(n, e.Cause) {
			out[i].Message = ""
		}
	}
	return out
}

// ofPool reports whether an event changes the pool itself. Events such as assignments to
// pods and releases do not.
func ofPool(k introspect.EventKind) bool {
	switch k {
	case introspect.EventAddressAssigned, introspect.EventAddressReleased, introspect.EventSubnetsRead,
		introspect.EventPodsExpected, introspect.EventMissedDEL,
		introspect.EventFlowsDeleted, introspect.EventFlowsKept:
		return false
	}
	return true
}

// action describes what an action does, on which ENI and why.
func action(e introspect.Event) string {
	text := e.Message
	if e.ENIID != "" && !strings.Contains(text, e.ENIID) {
		text += " on " + e.ENIID
	}
	if e.Reason != "" && !strings.Contains(text, e.Reason) {
		text += ": " + e.Reason
	}
	return strings.TrimSpace(text)
}

func ended(e introspect.Event) (string, draw.Role) {
	took := ""
	if e.DurationMS != nil {
		took = human.Milliseconds(*e.DurationMS)
	}
	if e.Kind == introspect.EventActionDone {
		return strings.TrimSpace("done " + took), draw.Good
	}
	text := "failed"
	if took != "" {
		text += " after " + took
	}
	for _, more := range []string{e.Cause, e.Message} {
		if more != "" {
			text += ": " + more
		}
	}
	return text, draw.Bad
}

// decisions writes the last changes of the pool, newest first.
func (m *Model) decisions(c pages.Context, sheet *draw.Sheet, n *store.Node) {
	if n.Source == document.SourceV1 {
		return
	}
	const most = 12
	sheet.Head("LAST DECISIONS", "newest first")
	if !m.docs.Has(watch.WantEvents) {
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantEvents, n, "The events")))
		return
	}
	all := decisionsOf(brief(m.events.Items, n))
	for i, d := range slices.Backward(all) {
		if i < len(all)-most {
			break
		}
		at := draw.Clock(d.At, c.Now)
		if d.Kind != "" {
			sheet.Row(at, 9, draw.T(d.Role, pad(d.Kind, 15)), draw.T(draw.Text, d.Text))
			continue
		}
		sheet.Row(at, 9, draw.T(draw.Text, d.Text+"  "), draw.T(d.Role, d.End))
	}
	if len(all) == 0 {
		sheet.Add(draw.T(draw.Faint, "None in the daemon's history."))
	}
}
