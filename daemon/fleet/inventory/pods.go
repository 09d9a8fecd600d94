package inventory

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// PodWhy is what the daemon of a node reports about ADDs.
type PodWhy struct {
	Failures []introspect.Failure
	Blocked  []introspect.BlockedCard
}

// WhyOf returns what the documents of a node say about ADDs; false if they were not read.
func WhyOf(d watch.Detail) (why PodWhy, read bool) {
	if d.Failures != nil {
		why.Failures = d.Failures.Items
	}
	if d.Plan != nil {
		why.Blocked = d.Plan.Blocked
	}
	return why, d.Failures != nil || d.Plan != nil
}

// Pods holds the pods of all nodes.
type Pods struct {
	View *store.View
	Kube *watch.ClusterPods // nil if not listed
	Why  map[string]PodWhy  // by node, for the nodes that were asked
	Now  time.Time

	// Differ is when the daemon and Kubernetes were first seen to disagree about a pod. They are
	// read at different moments, so brief disagreement is normal. Join returns the next value.
	Differ map[string]time.Time
}

// Join passes the rows of each node, and of each unscheduled pod, to each; differ is the Differ
// for the next call.
func (f *Pods) Join(each func([]*Pod)) (differ map[string]time.Time) {
	of := map[string][]watch.Pod{}
	if f.Kube != nil {
		for _, p := range f.Kube.Pods {
			of[p.Node] = append(of[p.Node], p)
		}
	}
	differ = map[string]time.Time{}
	var held []document.AddressItem // reused for each node
	for _, n := range f.View.Nodes {
		in := f.sides(n, of[n.Metadata.Name], differ)
		held = n.Pods(held[:0])
		in.Held = held
		rows := JoinPods(in)
		for _, r := range rows {
			r.Node, r.At = n.Metadata.Name, f.Now
		}
		each(rows)
	}
	for _, p := range of[""] {
		r := &Pod{ID: name(p.PodRef), Full: name(p.PodRef), At: f.Now,
			NodePodItem: document.NodePodItem{PodRef: p.PodRef, Phase: p.Phase, State: document.PodWaiting, Reason: unbound}}
		if p.Reason != "" {
			r.Reason += ": " + p.Reason
		}
		if p.Phase == "Succeeded" || p.Phase == "Failed" {
			r.State, r.Reason = document.PodEnded, ""
		}
		each([]*Pod{r})
	}
	return differ
}

// sides returns the PodSides of one node without Held.
func (f *Pods) sides(n *store.Node, kube []watch.Pod, differ map[string]time.Time) PodSides {
	name, read := n.Metadata.Name, n.AddressesAt()
	in := PodSides{Pods: kube, Asked: !read.IsZero(), Silent: silence(n)}
	if f.Kube != nil {
		in.Listed = !f.Kube.WithoutOnly && !f.Kube.At.IsZero() && (f.Kube.Nodes == nil || f.Kube.Nodes[name])
	}
	if why, asked := f.Why[name]; asked {
		in.Failures, in.Blocked = why.Failures, why.Blocked
	}
	in.Blocked = Blocked(n, in.Blocked)
	in.Settled = func(pod introspect.PodRef, address string) bool {
		if f.Kube == nil || f.Kube.At.IsZero() {
			return false
		}
		key := name + "\n" + pod.Namespace + "/" + pod.Name + "\n" + address
		since, known := f.Differ[key]
		if !known {
			since = f.Kube.At
		}
		differ[key] = since
		return read.After(since)
	}
	return in
}

// silence returns why the daemon of a node reports nothing about its pods.
func silence(n *store.Node) string {
	switch {
	case fleet.Excused(n.NodeIPAM):
		return "no aws-node runs on its node"
	case n.Error != nil:
		return "its node could not be read: " + string(n.Error.Reason)
	}
	return "its node's addresses have not been read yet"
}

// Blocked returns what holds back the pool of a node: what its plan says or, where that says nothing, its
// summary.
func Blocked(n *store.Node, planned []introspect.BlockedCard) []introspect.BlockedCard {
	if len(planned) > 0 || n.Summary == nil || n.Free > 0 {
		return planned
	}
	for _, b := range n.Summary.Backoffs {
		for _, p := range n.Problems {
			if p.Code == b.Cause {
				return []introspect.BlockedCard{{Cause: p.Code, Message: p.Message}}
			}
		}
	}
	for _, p := range n.Problems {
		if p.Severity != document.SeverityInfo {
			return []introspect.BlockedCard{{Cause: p.Code, Message: p.Message}}
		}
	}
	return nil
}

// PodReason returns the state of a pod for which its node's daemon holds no address, and why, as the
// list of pods shows it. why is what the daemon reports about ADDs; empty if it was not asked.
func PodReason(n *store.Node, why PodWhy, p watch.Pod) (state, reason string) {
	in := PodSides{Asked: !n.AddressesAt().IsZero(), Silent: silence(n), Failures: why.Failures, Blocked: Blocked(n, why.Blocked)}
	return stateWithout(in, p)
}
