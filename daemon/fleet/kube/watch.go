package kube

import (
	"context"
	"maps"
	"reflect"
	"sync"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// Watch puts every target, and puts it again when it changes, until ctx ends or the API server
// refuses for good (forbidden, credential). While it retries it calls trouble with a one-line
// reason that says what to do, and with nil once it works again; trouble may be nil. Calls are
// never concurrent; put is first called when both nodes and pods are known.
func (c *Cluster) Watch(ctx context.Context, put func(fleet.Target), remove func(name string), trouble func(error)) error {
	r := &roster{c: c, put: put, remove: remove, trouble: trouble, nodes: map[string]*document.NodeObject{}, pods: map[string]*daemonPod{},
		on: map[string]map[string]*daemonPod{}, troubles: map[string]error{}}
	nodes := &follower[nodeObject]{
		c: c, kind: KindNodes, selection: c.nodeSelection(),
		replace: r.replaceNodes, set: r.setNode, unset: r.unsetNode, trouble: r.troubleOf("nodes"),
	}
	pods := &follower[podObject]{
		c: c, kind: KindPods, namespace: c.cfg.Namespace, selection: c.daemonSelection(),
		replace: r.replacePods, set: r.setPod, unset: r.unsetPod, trouble: r.troubleOf("pods"),
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
	remove  func(string)
	trouble func(error) // nil if unused

	mu                  sync.Mutex       // guards all below, and the calls of put, remove and trouble
	troubles            map[string]error // by kind: why its watch is failing
	nodes               map[string]*document.NodeObject
	pods                map[string]*daemonPod            // by name
	on                  map[string]map[string]*daemonPod // by node and name
	haveNodes, havePods bool
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

// publish puts the current state of one node.
func (r *roster) publish(node string) {
	if o := r.nodes[node]; o != nil && r.haveNodes && r.havePods {
		r.put(r.c.target(node, o, r.best(node)))
	}
}

func (r *roster) publishAll() {
	for node := range r.nodes {
		r.publish(node)
	}
}

func (r *roster) replaceNodes(all []nodeObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.haveNodes
	r.haveNodes = true
	seen := map[string]bool{}
	for i := range all {
		name := all[i].Metadata.Name
		seen[name] = true
		r.change(name, all[i].object(), first)
	}
	for name := range r.nodes {
		if !seen[name] {
			r.drop(name)
		}
	}
	if first {
		r.publishAll()
	}
}

// change updates a node; if quiet, the caller publishes all nodes afterwards.
func (r *roster) change(name string, o *document.NodeObject, quiet bool) {
	if !r.c.wants(name) || reflect.DeepEqual(r.nodes[name], o) {
		return // most updates are heartbeats
	}
	r.nodes[name] = o
	if !quiet {
		r.publish(name)
	}
}

func (r *roster) drop(name string) {
	if _, ok := r.nodes[name]; ok {
		delete(r.nodes, name)
		r.remove(name)
	}
}

func (r *roster) setNode(n nodeObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(n.Metadata.Name, n.object(), false)
}

func (r *roster) unsetNode(n nodeObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(n.Metadata.Name)
}

func (r *roster) replacePods(all []podObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.havePods
	r.havePods = true
	seen := map[string]bool{}
	for i := range all {
		seen[all[i].Metadata.Name] = true
		r.changePod(all[i].daemon(), first)
	}
	for name := range maps.Clone(r.pods) {
		if !seen[name] {
			r.dropPod(name)
		}
	}
	if first {
		r.publishAll()
	}
}

func (r *roster) changePod(d daemonPod, quiet bool) {
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
	if quiet {
		return
	}
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

func (r *roster) setPod(p podObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changePod(p.daemon(), false)
}

func (r *roster) unsetPod(p podObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropPod(p.Metadata.Name)
}
