package pagetest

import (
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/source"
	"cnictl/tui/source/sourcetest"
)

// Fleet is a fleet of the nodes above with ten samples of each.
func Fleet() *sourcetest.Fleet {
	f := sourcetest.New(0, 0)
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
	f.Documents = func(node string, want source.Want, _ source.Query) source.Detail {
		return answer(w.details, node, want, f.Now())
	}
	return f
}

// sampled is a node as it was some samples ago.
func sampled(n introspect.NodeIPAM, i int, now time.Time) introspect.NodeIPAM {
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

// answer gives the documents that a node has, errors for others.
func answer(all map[string]source.Detail, node string, want source.Want, now time.Time) source.Detail {
	d := source.Detail{Node: node, At: now, Errors: map[source.Want]introspect.NodeError{}}
	have, ok := all[node]
	fail := func(w source.Want, reason introspect.Reason, message string) {
		d.Errors[w] = introspect.NodeError{Node: node, Reason: reason, Message: message}
	}
	for w := source.Want(1); w <= want; w <<= 1 {
		if want&w == 0 {
			continue
		}
		if !ok || have.ENIs == nil && have.Plan == nil {
			fail(w, introspect.ReasonTimeout, "no answer within 5s")
			continue
		}
		found := true
		switch w {
		case source.WantENIs:
			d.ENIs, found = have.ENIs, have.ENIs != nil
		case source.WantPlan:
			d.Plan, found = have.Plan, have.Plan != nil
		case source.WantEvents:
			d.Events, found = have.Events, have.Events != nil
		case source.WantFailures:
			d.Failures, found = have.Failures, have.Failures != nil
		case source.WantLogs:
			d.Logs, found = have.Logs, have.Logs != nil
		case source.WantPod:
			d.Pod, found = have.Pod, have.Pod != nil
		case source.WantPods:
			d.Pods = have.Pods
		case source.WantKubeEvents:
			d.KubeEvents = have.KubeEvents
		case source.WantContainerLog:
			if d.Logs == nil { // it is read in the place of the daemon's own
				d.ContainerLog, found = have.ContainerLog, have.ContainerLog != nil
			}
		}
		if !found {
			fail(w, introspect.ReasonNoEndpoint, "the node does not know the path")
		}
	}
	return d
}

// Nobody is a fleet of which the list has not come yet.
func Nobody() *sourcetest.Fleet { return sourcetest.New(0, 0) }

// Emptied is a fleet whose last node has left.
func Emptied() *sourcetest.Fleet {
	f := sourcetest.New(0, 0)
	f.Put(introspect.NodeIPAM{Metadata: introspect.ObjectMeta{Name: Plain}})
	f.Remove(Plain)
	return f
}

// Forbidden is a fleet whose list may not be had.
func Forbidden() *sourcetest.Fleet {
	f := sourcetest.New(0, 0)
	stats := f.Stats()
	stats.Problem = `list nodes: nodes is forbidden: User "dev" cannot list resource "nodes"; grant it the ClusterRole cnictl of deploy/`
	f.SetStats(stats)
	return f
}
