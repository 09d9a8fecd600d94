package parts

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/pages"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Missing says why there is nothing to show of a document, in one sentence. What is
// missing without an error is on its way.
func Missing(c pages.Context, d *Documents, w source.Want, n *store.Node, what string) string {
	if e, ok := d.Error[w]; ok {
		return what + ": " + Reason(e)
	}
	switch {
	case d.Node == "":
		return what + ": no node is chosen."
	case n == nil && c.View != nil && c.View.Generation > 0:
		return what + ": the fleet has no node " + show.Safe(d.Node) + "."
	case n != nil && n.State == introspect.StateNoDaemon:
		return what + ": no aws-node pod runs on this node."
	case n != nil && Original(n) && w&^(source.WantENIs|source.WantPods|source.WantKubeEvents|source.WantContainerLog) != 0:
		return what + ": the original's daemon does not tell it."
	}
	return what + ": reading " + show.Safe(d.Node) + " ..."
}

// Unread says why a page of the whole fleet has nothing to show, "" once any daemon has
// answered.
func Unread(v *store.View) string {
	if v == nil {
		return "No node is known yet."
	}
	switch t := v.Totals; {
	case t.Nodes == 0:
		return "No node is known yet."
	case t.Live+t.Partial > 0:
		return ""
	case t.Unasked > 0:
		return "No daemon has answered yet: " + show.Plural(t.Unasked, "node is", "nodes are") + " still to be read."
	}
	return "None of " + show.Plural(v.Totals.Nodes, "node", "nodes") + " could be read: the first screen says why of each."
}

// Reason says why something could not be read.
func Reason(e introspect.NodeError) string {
	switch e.Reason {
	case introspect.ReasonNoEndpoint:
		return "this daemon does not tell it (" + string(e.Reason) + ")."
	case "":
		return show.OrUnknown(show.Safe(e.Message))
	}
	message := show.Safe(e.Message)
	if message == "" {
		return show.Safe(string(e.Reason)) + "."
	}
	return message + " (" + show.Safe(string(e.Reason)) + ")"
}

// Age says how old a reading is, "" while it is fresh.
func Age(read, now time.Time, fresh time.Duration) string {
	if read.IsZero() || now.Sub(read) <= fresh {
		return ""
	}
	return show.Age(now.Sub(read)) + " old"
}

// StateOf says how much is known of a node and since when, with the role to say it in.
func StateOf(n *store.Node, now time.Time) (string, theme.Role) {
	switch {
	case n == nil:
		return "not in the fleet", theme.Stale
	case n.State == introspect.StateLive:
		return show.Safe(n.Word), SeverityRole(n.Severity)
	}
	words := string(n.State)
	if n.SampledAt != nil && n.Summary != nil {
		words += " " + show.Since(n.SampledAt, now)
	}
	if n.Error != nil {
		words += ": " + Reason(*n.Error)
	}
	return show.Safe(words), theme.Stale
}

// SeverityRole is how a severity is shown; its word stands beside it.
func SeverityRole(s introspect.Severity) theme.Role {
	switch s {
	case introspect.SeverityError:
		return theme.Bad
	case introspect.SeverityWarning:
		return theme.Warn
	case introspect.SeverityInfo:
		return theme.Info
	}
	return theme.Good
}

// Flags lists what is special about an ENI, "" for an ordinary one.
func Flags(e introspect.NodeENI) string {
	var out []string
	for _, f := range []struct {
		on   bool
		name string
	}{
		{e.Primary, introspect.ENIFlagPrimary}, {e.Trunk, introspect.ENIFlagTrunk},
		{e.EFA, introspect.ENIFlagEFA}, {e.Excluded, introspect.ENIFlagExcluded},
	} {
		if f.on {
			out = append(out, f.name)
		}
	}
	return strings.Join(out, ",")
}

// PodName is namespace/name, safe to print; "" without a name.
func PodName(namespace, name string) string {
	switch {
	case name == "":
		return ""
	case namespace == "":
		return show.Safe(name)
	}
	return show.Safe(namespace) + "/" + show.Safe(name)
}

// SplitPod parts namespace/name.
func SplitPod(s string) introspect.PodRef {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok {
		return introspect.PodRef{Name: s}
	}
	return introspect.PodRef{Namespace: namespace, Name: name}
}

// Go opens a screen.
func Go(o pages.Open) tea.Cmd { return func() tea.Msg { return o } }
