package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// Times of a watch.
const (
	watchPeriod = 5 * time.Minute // the API server ends a watch after one to two of these
	watchSlack  = 30 * time.Second
	firstPause  = 500 * time.Millisecond
	longPause   = 30 * time.Second
	giveUpAfter = 3 // refusals in a row, where it worked before: a right is gone
)

// Watch tells of every target, and of each again when it changes, until ctx ends or the
// API server refuses what no waiting mends (forbidden, credential). While it tries again it
// tells why, in one line with what to do, and nil when all is well again; trouble may be
// nil. Calls are made by one goroutine at a time, those of put when both nodes and pods are
// known.
func (c *Cluster) Watch(ctx context.Context, put func(fleet.Target), remove func(name string), trouble func(error)) error {
	r := &roster{c: c, put: put, remove: remove, trouble: trouble, nodes: map[string]*introspect.NodeObject{}, pods: map[string]*daemonPod{}, on: map[string]map[string]*daemonPod{}, troubles: map[string]error{}}
	nodes := &follower[nodeDoc]{
		c: c, kind: kindNodes, query: c.nodeQuery(), key: func(n *nodeDoc) string { return n.Metadata.Name },
		replace: func(all []nodeDoc) { r.replaceNodes(all) },
		set:     r.setNode, unset: r.unsetNode, trouble: r.troubleOf("nodes"),
	}
	pods := &follower[podDoc]{
		c: c, kind: kindPods, namespace: c.cfg.Namespace, query: c.podQuery(), key: func(p *podDoc) string { return p.Metadata.Name },
		replace: func(all []podDoc) { r.replacePods(all) },
		set:     r.setPod, unset: r.unsetPod, trouble: r.troubleOf("pods"),
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
	trouble func(error) // nil: nobody wants to know

	mu                  sync.Mutex       // guards all below, and the calls of put, remove and trouble
	troubles            map[string]error // by kind, of those that are not followed now
	nodes               map[string]*introspect.NodeObject
	pods                map[string]*daemonPod            // by name
	on                  map[string]map[string]*daemonPod // by node and name
	haveNodes, havePods bool
}

// troubleOf takes what is wrong with the watch of a kind, and tells of what is wrong with
// any: of nodes before pods.
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

// tell puts one node as it is now.
func (r *roster) tell(node string) {
	if o := r.nodes[node]; o != nil && r.haveNodes && r.havePods {
		r.put(r.c.target(node, o, r.best(node)))
	}
}

func (r *roster) tellAll() {
	for node := range r.nodes {
		r.tell(node)
	}
}

func (r *roster) replaceNodes(all []nodeDoc) {
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
		r.tellAll()
	}
}

// change takes in a node; quiet: everything is told afterwards.
func (r *roster) change(name string, o *introspect.NodeObject, quiet bool) {
	if !r.c.wants(name) || reflect.DeepEqual(r.nodes[name], o) {
		return // most updates are heartbeats
	}
	r.nodes[name] = o
	if !quiet {
		r.tell(name)
	}
}

func (r *roster) drop(name string) {
	if _, ok := r.nodes[name]; ok {
		delete(r.nodes, name)
		r.remove(name)
	}
}

func (r *roster) setNode(n nodeDoc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change(n.Metadata.Name, n.object(), false)
}

func (r *roster) unsetNode(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(name)
}

func (r *roster) replacePods(all []podDoc) {
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
		r.tellAll()
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
		r.tell(last.node) // a pod of the same name elsewhere: this one is gone
	}
	r.tell(d.node)
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
	r.tell(p.node)
}

func (r *roster) setPod(p podDoc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changePod(p.daemon(), false)
}

func (r *roster) unsetPod(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropPod(name)
}

// follower keeps its owner in step with the objects of a kind.
type follower[T any] struct {
	c         *Cluster
	kind      kind
	namespace string
	query     query
	key       func(*T) string
	replace   func([]T) // all there are, at the start and after a gap
	set       func(T)
	unset     func(key string)
	trouble   func(error) // nil: nobody wants to know

	troubled bool   // trouble was told of
	lasted   bool   // the last watch did well for a while: what follows is a first failure
	version  string // last one seen
	listed   bool
	once     bool // it was listed at some time
	watched  bool // a watch was granted at some time
	failures int
}

// run follows until ctx ends or there is no hope; its error is then why.
func (f *follower[T]) run(ctx context.Context) error {
	for {
		err := f.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			f.failures = 0
			f.well()
			continue
		}
		if f.lasted {
			f.failures, f.lasted = 0, false
		}
		granted := f.once && (f.watched || !f.listed)
		if f.failures++; hopeless(err) && (!granted || f.failures >= giveUpAfter) {
			return f.followError(err)
		}
		f.tell(err)
		if isGone(err) {
			f.listed = false
		}
		if !pause(ctx, f.failures) {
			return nil
		}
	}
}

// tellAfter is how many failures in a row are told of: one is mended by asking again, as
// at the end of a connection, before anybody has read of it.
const tellAfter = 2

func (f *follower[T]) tell(err error) {
	if f.trouble != nil && (f.failures >= tellAfter || hopeless(err) || !f.once) {
		f.troubled = true
		f.trouble(f.followError(err))
	}
}

// well notes that what was asked for is granted.
func (f *follower[T]) well() {
	if f.troubled {
		f.troubled = false
		f.trouble(nil)
	}
}

// followError is what, why and what to do.
func (f *follower[T]) followError(err error) error {
	return &FollowError{Kind: f.kind.plural, Err: err}
}

// FollowError tells in one line that objects of a kind cannot be followed, why, and what
// to do.
type FollowError struct {
	Kind string // nodes
	Err  error
}

func (e *FollowError) Error() string {
	return fmt.Sprintf("the %s cannot be followed: %v; %s", e.Kind, e.Err, Advice(e.Err))
}

func (e *FollowError) Unwrap() error { return e.Err }

// NodeReason is the reason, for those who know the method alone.
func (e *FollowError) NodeReason() introspect.Reason {
	var known interface{ NodeReason() introspect.Reason }
	if errors.As(e.Err, &known) {
		return known.NodeReason()
	}
	return introspect.ReasonTransport
}

func hopeless(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Hopeless()
}

// goneError: the version to go on from is forgotten.
type goneError struct{ message string }

func (e *goneError) Error() string { return e.message }

func isGone(err error) bool {
	var gone *goneError
	var refused *Error
	return errors.As(err, &gone) || errors.As(err, &refused) && refused.Code == http.StatusGone
}

// pause waits the longer the more often it failed, each time by another measure.
func pause(ctx context.Context, failures int) bool {
	wait := min(firstPause<<min(failures-1, 10), longPause)
	timer := time.NewTimer(wait/2 + rand.N(wait/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// step lists or watches; nil means to go on at once.
func (f *follower[T]) step(ctx context.Context) error {
	if f.listed {
		return f.watch(ctx)
	}
	var all []T
	version, err := list(ctx, f.c.api, f.kind, f.namespace, f.query, func(item T) { all = append(all, item) })
	if err != nil {
		return err
	}
	f.version, f.listed, f.once = version, true, true
	f.replace(all)
	return nil
}

// event is one change of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch applies what changes until the watch ends.
func (f *follower[T]) watch(ctx context.Context) error {
	seconds := int(watchPeriod.Seconds()) + rand.N(int(watchPeriod.Seconds()))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchSlack)
	defer cancel()
	ask := query{"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": f.version, "timeoutSeconds": strconv.Itoa(seconds)}
	maps.Copy(ask, f.query)
	r := f.kind.request("watch", f.namespace, "")
	body, err := f.c.api.open(ctx, http.MethodGet, r, f.kind.path(f.namespace), ask, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	f.watched = true
	f.well()
	s, began := newStream(body), time.Now()
	for {
		var e event
		if err := s.next(&e); err != nil {
			// One that ends at once whatever it told would otherwise be asked for as fast
			// as it is answered.
			if f.lasted = time.Since(began) > longPause; f.lasted && errors.Is(err, io.EOF) {
				return nil // the ordinary end
			}
			return unreadable(ctx, r, err)
		}
		if err := f.apply(e); err != nil {
			return err
		}
	}
}

func (f *follower[T]) apply(e event) error {
	if e.Type == "ERROR" {
		var s struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(e.Object, &s); err == nil && s.Code == http.StatusGone {
			return &goneError{s.Message}
		}
		return fmt.Errorf("the watch of %s ended: %.200s", f.kind.plural, s.Message)
	}
	var head struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(e.Object, &head); err != nil || head.Metadata.ResourceVersion == "" {
		return fmt.Errorf("%w: an event without a version", errForm)
	}
	if e.Type != "BOOKMARK" {
		var item T
		if err := json.Unmarshal(e.Object, &item); err != nil {
			return fmt.Errorf("%w: %w", errForm, err)
		}
		if e.Type == "DELETED" {
			f.unset(f.key(&item))
		} else {
			f.set(item)
		}
	}
	f.version = head.Metadata.ResourceVersion
	return nil
}
