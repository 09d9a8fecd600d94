// Package migrate judges what would block a migration from upstream's daemon to ours, or back. Its
// checks state facts as causes do; the engine of package causes makes a report of them. What
// concerns the cluster is checked once, the rest on each node.
//
// The package is pure: no I/O and no clock.
package migrate

import (
	"cmp"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// Move is a migration from the running daemon to the other one.
type Move struct {
	To     evidence.Version // the release of upstream, or of its add-on, to go back to; zero if none was named
	Images []string         // references of the new images, as a pod's spec has them; empty if none were named
}

// Diagnose returns what stands in the way of the migration, as far as it is wanted; nil wants all.
func (m Move) Diagnose(ev *evidence.Evidence, wants func(code string) bool) document.DoctorReport {
	return causes.Diagnose(ev, causes.Options{Wants: wants, Checks: m.checks()})
}

// Daemon returns the running daemon, "upstream" or "ours", and its release, as far as known. In
// the middle of a migration the DaemonSet decides, because the next pods come from it.
func Daemon(ev *evidence.Evidence) (from, release string) {
	for _, c := range causes.Cases(ev) {
		switch image, ok := c.R.DaemonSet.Content, c.R.DaemonSet.OK(); {
		case ok && image == nil, !ok && !c.R.Summary.OK() && c.Release == (evidence.Version{}):
			continue // nothing runs, or nothing was read
		case c.Ours:
			if v, known := evidence.ParseVersion(c.R.Summary.Content.Version); known {
				release = v.String()
			}
			return "ours", release
		}
		if c.Release != (evidence.Version{}) {
			release = c.Release.String()
		}
		return "upstream", release
	}
	return "", ""
}

// check is a check of the catalogue.
type check struct {
	code string
	once func(*node) []result   // of the cluster, as one node's reading shows it, or
	all  func([]*node) []result // of the cluster, as all nodes show it, or
	node func(*node) []result   // of each node
}

var checks = []check{
	{code: "migrate/owner-addon", once: ownedByAddOn},
	{code: "migrate/owner-other", once: ownedByOther},
	{code: "migrate/selector", once: otherSelector},
	{code: "migrate/adopt-marks", once: unmarked},
	{code: "migrate/crd-owned", once: crdOwned},
	{code: "migrate/version-base", all: withoutState},
	{code: "migrate/version-step", once: stepTooLarge},
	{code: "migrate/image-mix", once: imagesMixed},
	{code: "migrate/probe-addr", once: probesElsewhere},
	{code: "migrate/env-unknown", once: envUnknown},
	{code: "migrate/env-drift", once: envDrifted},
	{code: "migrate/env-conflict", once: envConflicts},
	{code: "migrate/policy-mode", once: policyHalfOn},
	{code: "migrate/crds-needed", once: crdMissing},
	{code: "migrate/rbac", once: moveDenied},
	{code: "migrate/custom-parts", once: partsAdded},
	{code: "migrate/conflist-custom", all: conflistOwn},
	{code: "migrate/iam", node: actionDenied},
	{code: "migrate/credentials", node: credentialsChange},
	{code: "migrate/images", node: imagesUnreachable},
	{code: "migrate/rollout-health", all: rolloutStalls},
	{code: "migrate/rollout-time", once: rolloutWaves},
	{code: "migrate/webhooks", once: failsClosed},
	{code: "migrate/pod-security", once: podsRefused},
	{code: "migrate/consumers", once: monitorsLost},
	{code: "migrate/other-nodes", all: nodesWithout},
	{code: "migrate/subnets", all: subnetsShort},
	{code: "migrate/eni-foreign", node: interfacesAdopted},
	{code: "migrate/state-file", node: stateLost},
	{code: "migrate/state-pods", node: statePods},
	{code: "migrate/state-netns", node: stateRules},
	{code: "migrate/ports-sockets", node: portsHeldByOthers},
	{code: "migrate/cni-dir", node: cniDirectories},
	{code: "migrate/iptables-mode", node: chainsElsewhere},
	{code: "migrate/host-managers", node: hostManagers},
	{code: "migrate/kernel", node: kernelLacks},
	{code: "migrate/imds", node: metadataSilent},
	{code: "migrate/apiserver-path", node: apiPath},
	{code: "migrate/mtu", node: linksMTU},
	{code: "migrate/max-pods", node: maxPodsAbove},
	{code: "migrate/plugin-skew", node: pluginOther},
	{code: "migrate/ebpf-left", node: programsLeft},
}

// checks returns the checks of a move for the engine.
func (m Move) checks() (out []causes.Rule) {
	for _, x := range checks {
		r := causes.Rule{Code: x.code}
		switch {
		case x.node != nil:
			r.Node = func(c *causes.Case) []result { return x.node(&node{c, m}) }
		case x.all != nil:
			r.All = func(cs []*causes.Case) []result { return x.all(m.nodes(cs)) }
		default:
			r.All = func(cs []*causes.Case) []result { return x.once(best(m.nodes(cs), x.code)) }
		}
		out = append(out, r)
	}
	return out
}

func (m Move) nodes(cs []*causes.Case) (out []*node) {
	for _, c := range cs {
		out = append(out, &node{c, m})
	}
	return out
}

// best returns the first node with the fewest sources missing of those that a check requires.
func best(nodes []*node, code string) *node {
	entry, _ := catalogue.Lookup(code)
	return slices.MinFunc(nodes, func(a, b *node) int { return cmp.Compare(lacks(a, entry), lacks(b, entry)) })
}

func lacks(c *node, entry *catalogue.Entry) (n int) {
	missing := c.R.Missing()
	for _, id := range entry.Required {
		if _, is := missing[id]; is {
			n++
		}
	}
	return n
}

// node is a node before a move.
type node struct {
	*causes.Case
	move Move
}

// Shorter names of what checks state.
type (
	fact  = causes.Fact
	state = causes.State
)

const (
	unread = causes.Unread
	no     = causes.No
	yes    = causes.Yes
)

type result = causes.Result

// on states something about a source of a node.
func on[T any](c *node, s evidence.Source[T], id, path, expected string, judge func(T) (value any, s state)) fact {
	return causes.On(c.Case, s, id, path, expected, judge)
}

func stateOf(holds bool) state {
	if holds {
		return yes
	}
	return no
}

// every lists all names.
func every(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// ofCluster returns a finding about the whole cluster.
func ofCluster(summary string, decisive ...fact) result {
	return result{Scope: document.FindingScope{Cluster: true}, Summary: summary, Decisive: decisive}
}

// ofNode returns a finding about a node.
func ofNode(summary string, decisive ...fact) result {
	return result{Summary: summary, Decisive: decisive}
}
