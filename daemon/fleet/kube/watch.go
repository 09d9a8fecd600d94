package kube

import (
	"context"
	"reflect"
	"sync"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// Watch puts every target, and puts it again when it changes, until ctx ends or the API server
// refuses for good (forbidden, credential). A node is put as soon as it and its daemon's pod are
// read, however many are still to come; one without a pod when both lists are complete. Then all
// nodes have been put, and listed is called. While it retries it calls trouble with a one-line
// reason that says what to do, and with nil once it works again; trouble may be nil. Calls are
// never concurrent.
func (c *Cluster) Watch(ctx context.Context, put func(fleet.Target), listed func(), remove func(name string), trouble func(error)) error {
	r := newRoster(c, put, listed, remove, trouble)
	nodes := &follower[nodeObject]{
		c: c, kind: KindNodes, selection: c.nodeSelection(),
		begin: r.listNodes, set: r.setNode, unset: r.unsetNode, trouble: r.troubleOf("nodes"),
	}
	pods := &follower[podObject]{
		c: c, kind: KindPods, namespace: c.cfg.Namespace, selection: c.daemonSelection(),
		begin: r.listPods, set: r.setPod, unset: r.unsetPod, trouble: r.troubleOf("pods"),
	}
	err := both(ctx, nodes.run, pods.run)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// roster joins nodes with pods while both change.
type roster struct {
	c       *Cluster
	put     func(fleet.Target)
	listed  func()
	remove  func(string)
	trouble func(error) // nil if unused

	mu                  sync.Mutex       // guards all below, and the calls of the functions above
	troubles            map[string]error // by kind: why its watch is failing
	nodes               map[string]*document.NodeObject
	pods                map[string]*daemonPod            // by name
	on                  map[string]map[string]*daemonPod // by node and name
	haveNodes, havePods bool                             // all of them
}

func newRoster(c *Cluster, put func(fleet.Target), listed func(), remove func(string), trouble func(error)) *roster {
	return &roster{
		c: c, put: put, listed: listed, remove: remove, trouble: trouble, troubles: map[string]error{},
		nodes: map[string]*document.NodeObject{}, pods: map[string]*daemonPod{}, on: map[string]map[string]*daemonPod{},
	}
}

// troubleOf returns the trouble function for the watch of a kind. It reports the error of either
// watch, nodes before pods.
func (r *roster) troubleOf(kind string) func(error) {
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.troubles[kind] = err
		if r.trouble == nil {
			return
		}
		if first := r.troubles["nodes"]; first != nil {
			err = first
		} else {
			err = r.troubles["pods"]
		}
		r.trouble(err)
	}
}

func (r *roster) best(node string) (best *daemonPod) {
	for _, p := range r.on[node] {
		if p.better(best) {
			best = p
		}
	}
	return best
}

// publish puts the current state of one node. The pod of one without may still be to come.
func (r *roster) publish(node string) {
	o, pod := r.nodes[node], r.best(node)
	if o != nil && (pod != nil || r.haveNodes && r.havePods) {
		r.put(r.c.target(node, o, pod))
	}
}

// have records that one of the lists is complete.
func (r *roster) have(list *bool) {
	first := !*list
	if *list = true; !first || !r.haveNodes || !r.havePods {
		return
	}
	for node := range r.nodes {
		if r.best(node) == nil {
			r.publish(node)
		}
	}
	r.listed()
}

// listing takes a list of all objects of a kind: it sets each, and drops those known that it lacks.
func listing[T, K any](r *roster, known map[string]K, have *bool, name func(T) string, set func(T),
	drop func(string)) (add func(T), done func()) {
	seen := map[string]bool{}
	add = func(item T) {
		seen[name(item)] = true
		set(item)
	}
	return add, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for name := range known {
			if !seen[name] {
				drop(name)
			}
		}
		r.have(have)
	}
}

func (r *roster) listNodes() (add func(nodeObject), done func()) {
	return listing(r, r.nodes, &r.haveNodes, func(n nodeObject) string { return n.Metadata.Name }, r.setNode, r.drop)
}

func (r *roster) drop(name string) {
	if _, ok := r.nodes[name]; ok {
		delete(r.nodes, name)
		r.remove(name)
	}
}

func (r *roster) setNode(n nodeObject) {
	name := n.Metadata.Name
	if !r.c.wants(name) {
		return
	}
	o := n.object()
	r.mu.Lock()
	defer r.mu.Unlock()
	if reflect.DeepEqual(r.nodes[name], o) {
		return // most updates are heartbeats
	}
	r.nodes[name] = o
	r.publish(name)
}

func (r *roster) unsetNode(n nodeObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(n.Metadata.Name)
}

func (r *roster) listPods() (add func(podObject), done func()) {
	return listing(r, r.pods, &r.havePods, func(p podObject) string { return p.Metadata.Name }, r.setPod, r.dropPod)
}

func (r *roster) setPod(p podObject) {
	d := p.daemon()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.pods[d.Name]
	if last != nil && reflect.DeepEqual(*last, d) {
		return
	}
	r.pods[d.Name] = &d
	if last != nil && last.node != d.node {
		delete(r.on[last.node], d.Name)
	}
	if r.on[d.node] == nil {
		r.on[d.node] = map[string]*daemonPod{}
	}
	r.on[d.node][d.Name] = &d
	if last != nil && last.node != d.node {
		r.publish(last.node) // a pod of the same name is elsewhere: the old one is gone
	}
	r.publish(d.node)
}

func (r *roster) dropPod(name string) {
	p := r.pods[name]
	if p == nil {
		return
	}
	delete(r.pods, name)
	delete(r.on[p.node], name)
	if len(r.on[p.node]) == 0 {
		delete(r.on, p.node)
	}
	r.publish(p.node)
}

func (r *roster) unsetPod(p podObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropPod(p.Metadata.Name)
}
