package doctor

import (
	"cmp"
	"slices"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// group is one cause with the nodes that report it.
type group struct {
	Code     string
	Severity introspect.Severity // the worst that a node gives it
	Nodes    []*affected
	Times    int // occurrences that are counted
}

// affected is one node with what it says of a cause.
type affected struct {
	Node     *store.Node
	Severity introspect.Severity
	Problems []introspect.Problem // of the cause; none when only counted
	Times    int                  // failed ADDs with the cause since the daemon started
}

func (a *affected) name() string { return a.Node.Metadata.Name }

// groupsOf sorts what nodes report by cause, worst and most frequent first. only is the
// one node to look at, "" = all.
func groupsOf(v *store.View, only string) []*group {
	if v == nil {
		return nil
	}
	by := map[string]*group{}
	var out []*group
	at := func(n *store.Node, code string) *affected {
		g := by[code]
		if g == nil {
			g = &group{Code: code, Severity: introspect.SeverityInfo}
			by[code], out = g, append(out, g)
		}
		if k := len(g.Nodes); k > 0 && g.Nodes[k-1].Node == n {
			return g.Nodes[k-1]
		}
		a := &affected{Node: n, Severity: introspect.SeverityInfo}
		g.Nodes = append(g.Nodes, a)
		return a
	}
	for _, n := range v.Nodes {
		if only != "" && n.Metadata.Name != only {
			continue
		}
		for _, p := range n.Problems {
			a := at(n, p.Code)
			a.Problems = append(a.Problems, p)
			if fleet.Rank(p.Severity) < fleet.Rank(a.Severity) {
				a.Severity = p.Severity
			}
		}
		if n.Summary == nil || n.Summary.ADDs == nil {
			continue
		}
		for code, times := range n.Summary.ADDs.Causes {
			if times > 0 {
				at(n, code).Times += times
			}
		}
	}
	for _, g := range out {
		for _, a := range g.Nodes {
			g.Times += a.Times
			if fleet.Rank(a.Severity) < fleet.Rank(g.Severity) {
				g.Severity = a.Severity
			}
		}
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(fleet.Rank(a.Severity), fleet.Rank(b.Severity)), cmp.Compare(len(b.Nodes), len(a.Nodes)), strings.Compare(a.Code, b.Code))
	})
	return out
}

// titleOf is the one-line meaning of a code.
func titleOf(code string) string {
	if t := cause.Code(code).Title(); t != "" {
		return t
	}
	switch code {
	case fleet.CodeNoFreeAddress:
		return "no address is free now; the pool can still grow"
	case fleet.CodeMaxPodsOver:
		return "kubelet's max-pods lets more pods be scheduled than there are addresses"
	case fleet.CodeMaxPodsUnder:
		return "kubelet's max-pods leaves addresses that can never be used"
	case fleet.CodeConfig:
		return "settings of the daemon have problems"
	case fleet.CodeUnplaced:
		return "pods have addresses that are on no interface of the node"
	case fleet.CodeTerminating:
		return "the daemon is draining"
	case fleet.CodeCordoned:
		return "the node is cordoned"
	case fleet.CodePartlyReadable:
		return "a part of what the node tells could not be read"
	}
	if introspect.State(code) == introspect.StateNoDaemon {
		return "no aws-node pod runs there, as on Windows and Fargate"
	}
	switch introspect.Reason(code) {
	case introspect.ReasonRefused:
		return "nothing listens at the daemon's address"
	case introspect.ReasonNoSocket:
		return "the daemon's socket does not exist"
	case introspect.ReasonForbidden:
		return "reading the node is not allowed"
	case introspect.ReasonTimeout:
		return "the node gave no complete answer in time"
	case introspect.ReasonUnresolved:
		return "the node's host name is not known"
	case introspect.ReasonTransport:
		return "the connection to the node broke"
	case introspect.ReasonStatus, introspect.ReasonNotFound, introspect.ReasonNotServed, introspect.ReasonBadRequest:
		return "the node answers, but not with what was asked for"
	case introspect.ReasonNotJSON, introspect.ReasonMalformed, introspect.ReasonTooLarge:
		return "the node's answer cannot be used"
	case introspect.ReasonNoEndpoint:
		return "the daemon does not know the path"
	case introspect.ReasonBusy:
		return "the daemon is busy"
	case introspect.ReasonNoPod:
		return "no aws-node pod is on the node"
	case introspect.ReasonPodNotRunning:
		return "the node's aws-node pod does not run"
	case introspect.ReasonOff:
		return "introspection is off, or on a socket that is out of reach"
	case introspect.ReasonCredential:
		return "the cluster's credentials are not accepted"
	}
	return show.Safe(code)
}
