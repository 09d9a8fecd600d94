package pagetest

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
)

// Fleet returns a fleet of the nodes in All, with ten samples of each.
func Fleet() *Source {
	f := NewSource(0, 0)
	w := makeWorld()
	f.Wait(-100 * time.Second)
	for i := range 10 {
		for _, n := range w.nodes {
			f.Put(sampled(n, i, f.Now()))
		}
		f.Wait(10 * time.Second)
	}
	for _, n := range w.nodes {
		f.Put(n)
	}
	f.Documents = func(node string, want watch.Want, _ watch.Query) watch.Detail {
		return answer(w.details, node, want, f.Now())
	}
	return f
}

// sampled returns a node as it was at sample i of ten.
func sampled(n document.NodeIPAM, i int, now time.Time) document.NodeIPAM {
	if n.Summary == nil {
		return n
	}
	s := *n.Summary
	s.Cards = append([]introspect.CardSummary(nil), s.Cards...)
	for j := range s.Cards {
		c := &s.Cards[j]
		gone := min(c.Assigned, (10-i)/2)
		c.Assigned, c.Free = c.Assigned-gone, c.Free+gone
	}
	n.Summary, n.SampledAt = &s, &now
	return n
}

// answer returns the documents that a node has, and errors for the others.
func answer(all map[string]watch.Detail, node string, want watch.Want, now time.Time) watch.Detail {
	d := watch.Detail{Node: node, At: now, Errors: map[watch.Want]document.NodeError{}}
	have, ok := all[node]
	fail := func(w watch.Want, reason introspect.Reason, message string) {
		d.Errors[w] = document.NodeError{Node: node, Reason: reason, Message: message}
	}
	if want == watch.WantClusterPods {
		d.ClusterPods = clusterPods(all, now)
		return d
	}
	for w := range want.Each() {
		if w == watch.WantNodeUse && have.Use != nil {
			d.Use = have.Use
			continue
		}
		if !ok || have.ENIs == nil && have.Plan == nil {
			fail(w, introspect.ReasonTimeout, "no answer within 5s")
			continue
		}
		found := have.Has(w) || w&(watch.WantPods|watch.WantKubeEvents|watch.WantConfig) != 0
		if w == watch.WantContainerLog && d.Logs != nil {
			continue // it is read only without the daemon's own log
		}
		d.Take(w, &have)
		if !found {
			fail(w, introspect.ReasonNoEndpoint, "the node does not know the path")
		}
	}
	return d
}

// clusterPods returns the pods of all nodes but the hostile one, and pods that no daemon
// reports.
func clusterPods(all map[string]watch.Detail, now time.Time) *watch.ClusterPods {
	out := &watch.ClusterPods{At: now, Pods: []watch.Pod{
		{PodRef: introspect.PodRef{Namespace: "shop", Name: "unbound"}, Phase: "Pending", Reason: "Unschedulable: 0/10 nodes are available: 10 Too many pods"},
		{PodRef: introspect.PodRef{Namespace: "shop", Name: "waits"}, Node: Plain, Phase: "Pending", Reason: "ContainerCreating"},
		{PodRef: introspect.PodRef{Namespace: "kube-system", Name: "kube-proxy-7k2p1"}, Node: Plain, Phase: "Running", HostNetwork: true, IPs: []string{"10.0.3.4"}},
		{PodRef: introspect.PodRef{Namespace: "shop", Name: "on-a-node-that-is-down"}, Node: Down, Phase: "Running", IPs: []string{"10.0.9.9"}},
	}}
	for node, d := range all {
		for _, p := range d.Pods {
			if p.Node = node; node != Hostile {
				out.Pods = append(out.Pods, p)
			}
		}
	}
	return out
}

// Unlisted returns a fleet whose list has not arrived yet.
func Unlisted() *Source { return NewSource(0, 0) }

// Emptied returns a fleet whose last node has left.
func Emptied() *Source {
	f := NewSource(0, 0)
	f.Put(document.NodeIPAM{Metadata: document.ObjectMeta{Name: Plain}})
	f.Remove(Plain)
	return f
}

// Unread returns a fleet known only from Kubernetes.
func Unread() *Source {
	return fleetOf(func(n *document.NodeIPAM) { n.State = document.StateAPIOnly })
}

// Lost returns a fleet in which no daemon can be read.
func Lost() *Source {
	return fleetOf(func(n *document.NodeIPAM) {
		n.State = document.StateForbidden
		n.Error = &document.NodeError{Node: n.Metadata.Name, Reason: introspect.ReasonForbidden, Message: `pods "aws-node-x7k2p" is forbidden: User "dev" cannot create resource "pods/portforward"`}
	})
}

// Bare returns a healthy fleet without subnets, trunks or problems.
func Bare() *Source {
	return fleetOf(func(n *document.NodeIPAM) {
		n.State, n.Source = document.StateLive, document.SourceSummary
		n.SampledAt, n.Summary = at(0), &introspect.Summary{Cards: []introspect.CardSummary{{Total: 9, Assigned: 2, Free: 7, ENIs: new(0), Cooling: new(0), Prefixes: new(0), FreePrefixes: new(0)}}}
	})
}

// fleetOf returns a fleet of three nodes that are alike.
func fleetOf(so func(*document.NodeIPAM)) *Source {
	f := NewSource(0, 0)
	for _, name := range []string{"ip-10-0-1-1", "ip-10-0-1-2", "ip-10-0-1-3"} {
		n := document.NodeIPAM{Metadata: document.ObjectMeta{Name: name}, Object: &document.NodeObject{
			Zone: "eu-west-1a", InstanceType: "m5.large", OS: "linux", Ready: new(true), MaxPods: new(29),
			Daemon: &document.DaemonPod{Namespace: "kube-system", Name: "aws-node-" + name[len(name)-1:], Phase: "Running", Ready: true},
		}}
		so(&n)
		f.Put(n)
	}
	return f
}
