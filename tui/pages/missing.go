package pages

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/show"
)

// Missing returns a sentence on why there is nothing to show for a document. Without an
// error or an outage, the document is still loading.
func Missing(c Context, d *Documents, w watch.Want, n *store.Node, what string) string {
	if c.Source != nil && c.Source.Stats().Outage() {
		return what + ": not available: API server unreachable"
	}
	if e, ok := d.Error[w]; ok {
		return what + ": " + Reason(e)
	}
	switch {
	case d.Node == "":
		return what + ": no node selected."
	case n == nil && c.View != nil && c.View.Generation > 0:
		return what + ": no such node: " + d.Node + "."
	case n != nil && n.State == document.StateNoDaemon:
		return what + ": no aws-node pod runs on this node."
	case n != nil && Upstream(n) && w&^(watch.WantENIs|watch.WantPods|watch.WantKubeEvents|watch.WantContainerLog) != 0:
		return what + ": not reported by the upstream daemon."
	}
	return what + ": reading " + d.Node + " ..."
}

// Unread returns why a fleet-wide page has nothing to show, "" once any daemon has answered.
func Unread(v *store.View) string {
	if v == nil {
		return "No nodes yet."
	}
	switch t := v.Totals; {
	case t.Nodes == 0:
		return "No nodes yet."
	case t.Live+t.Partial > 0:
		return ""
	case t.Unasked > 0:
		return "No daemon has answered yet: " + human.Plural(t.Unasked, "node is", "nodes are") + " still to be read."
	}
	return "None of " + human.Plural(v.Totals.Nodes, "node", "nodes") + " could be read: the first screen shows why for each."
}

// Reason returns why something could not be read.
func Reason(e document.NodeError) string {
	switch e.Reason {
	case introspect.ReasonNoEndpoint:
		return "not reported by this daemon (" + string(e.Reason) + ")."
	case "":
		return show.OrUnknown(e.Message)
	}
	message := e.Message
	switch {
	case message == "":
		return string(e.Reason) + "."
	case e.Reason == introspect.ReasonNotServed: // the message contains it
		return message
	}
	return message + " (" + string(e.Reason) + ")"
}

// Age returns how old a reading is, "" while it is fresh.
func Age(read, now time.Time, fresh time.Duration) string {
	if read.IsZero() || now.Sub(read) <= fresh {
		return ""
	}
	return human.Age(now.Sub(read)) + " old"
}
