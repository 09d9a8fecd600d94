package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet/watch"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// EventQuery selects events; the zero value selects all that concern the CNI.
type EventQuery struct {
	Node      string // that the event is about, or that reports it
	Namespace string // "" = all
	Since     time.Time
}

// Event is a Kubernetes event about the CNI.
type Event = watch.KubeEvent

// eventOf returns what is shown of an event.
func eventOf(d *kubeobject.Event) Event {
	first, at, count := d.Times()
	return Event{
		Namespace: d.Metadata.Namespace, Name: d.Metadata.Name, UID: d.Metadata.UID, At: at, Count: count, Type: d.Type,
		Reason: d.Reason, Message: d.Message, Kind: d.InvolvedObject.Kind, Object: d.Object(), Node: d.Node(), Source: d.Component(),
		First: evidence.Moment(&first), Action: d.Action,
	}
}

// readEvent reads an event, and the node that it names as its source.
func readEvent(raw []byte) (e evidence.KubeEvent, node string, _ error) {
	o, err := decodeObject[kubeobject.Event](raw)
	if err != nil {
		return evidence.KubeEvent{}, "", err
	}
	first, last, count := o.Times()
	return evidence.KubeEvent{
		At: evidence.Moment(&last), First: evidence.Moment(&first), Count: count, Type: o.Type, Reason: o.Reason, Message: scrub.Line(o.Message),
		Kind: o.InvolvedObject.Kind, Name: o.Object(), Source: o.Component(), Action: o.Action,
	}, o.Node(), nil
}

// All events of these components concern the CNI.
const (
	daemonComponent     = "aws-node"
	controllerComponent = "vpc-resource-controller"
	sandboxFailed       = "FailedCreatePodSandBox"
)

// OfCNI reports whether an event is about the CNI: reported by the daemon or by the controller of
// branch ENIs, or about what is aws-node's in a namespace.
func OfCNI(namespace, source, kind, object string) bool {
	rest, ours := strings.CutPrefix(object, namespace+"/"+daemonComponent)
	return source == daemonComponent || source == controllerComponent || kind == "CNINode" ||
		ours && (rest == "" || rest[0] == '-')
}

// concerns reports whether an event is one of a query's: about the CNI, or about a pod whose sandbox
// could not be created.
func (c *Cluster) concerns(e Event, q EventQuery) bool {
	if q.Node != "" && e.Node != q.Node || q.Namespace != "" && e.Namespace != q.Namespace || e.At.Before(q.Since) {
		return false
	}
	return e.Reason == sandboxFailed || OfCNI(c.cfg.Namespace, e.Source, e.Kind, e.Object)
}

// Events lists the events about the CNI, oldest first.
func (c *Cluster) Events(ctx context.Context, q EventQuery) ([]Event, error) {
	var out []Event
	err := list(ctx, c.api, KindEvents, q.Namespace, Selection{}, func(d kubeobject.Event) {
		if e := eventOf(&d); c.concerns(e, q) {
			out = append(out, e)
		}
	})
	if err != nil {
		return nil, err
	}
	sortEvents(out)
	return out, nil
}

// nodeEventQueries selects events that may concern a node, by their object or their reporter: all
// events of a large cluster are tens of megabytes. The API server matches source against either
// of the two fields in which an event names it.
func (c *Cluster) nodeEventQueries(node string) (out []EventQuery, fields []string) {
	for _, q := range []struct{ namespace, field string }{
		{"", "involvedObject.kind=Node,involvedObject.name=" + node},
		{"", "involvedObject.kind=CNINode,involvedObject.name=" + node},
		{"", "reason=" + sandboxFailed},
		{"", "source=" + daemonComponent},
		{"", "source=" + controllerComponent},
		{c.cfg.Namespace, "involvedObject.kind=Pod"},
	} {
		out, fields = append(out, EventQuery{Namespace: q.namespace}), append(fields, q.field)
	}
	return out, fields
}

// NodeEvents lists the CNI events on one node or about the pods on it, oldest first, at most the
// newest [watch.MaxKubeEvents].
func (c *Cluster) NodeEvents(ctx context.Context, node string, since time.Time) ([]Event, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queries, fields := c.nodeEventQueries(node)
	found := make([][]Event, len(fields))
	errs := make([]error, len(fields)+1)
	var pods []Pod
	var wait sync.WaitGroup
	wait.Go(func() { pods, errs[len(fields)] = c.Pods(ctx, node) })
	for i, field := range fields {
		wait.Go(func() {
			errs[i] = list(ctx, c.api, KindEvents, queries[i].Namespace, Selection{Fields: field}, func(d kubeobject.Event) {
				if e := eventOf(&d); c.concerns(e, EventQuery{Since: since}) {
					found[i] = append(found[i], e)
				}
			})
			if errs[i] != nil {
				cancel()
			}
		})
	}
	wait.Wait()
	if err := firstOf(errs[:len(fields)]); err != nil {
		return nil, err
	}
	// Without the pods, the events that name their node remain.
	return eventsOn(node, pods, found), nil
}

// firstOf returns the original error rather than the cancellations that it caused.
func firstOf(errs []error) error {
	var first error
	for _, err := range errs {
		var e *Error
		if err != nil && (first == nil || errors.As(first, &e) && e.Reason == introspect.ReasonCancelled) {
			first = err
		}
	}
	return first
}

// eventsOn merges lists of events and keeps those on a node, each once.
func eventsOn(node string, pods []Pod, lists [][]Event) []Event {
	there, seen := map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		there[p.Namespace+"/"+p.Name] = true
	}
	out := []Event{}
	for _, events := range lists {
		for _, e := range events {
			if (e.Node == node || e.Kind == "Pod" && e.Node == "" && there[e.Object]) && !seen[e.UID] {
				seen[e.UID] = true
				out = append(out, e)
			}
		}
	}
	sortEvents(out)
	return out[max(len(out)-watch.MaxKubeEvents, 0):]
}

func sortEvents(events []Event) {
	slices.SortFunc(events, func(a, b Event) int {
		if d := a.At.Compare(b.At); d != 0 {
			return d
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

// WatchEvents passes the existing events to put, oldest first, then each new one, until ctx ends
// or the API server refuses them. An event that recurs is passed again. While a failed watch is
// retried, trouble is called with the reason, and with nil once it works again; trouble may be
// nil. Calls are never concurrent.
func (c *Cluster) WatchEvents(ctx context.Context, q EventQuery, put func(Event), trouble func(error)) error {
	sent := map[string]time.Time{} // by UID: after a gap the API server resends all
	once := func(e Event) {
		if last, ok := sent[e.UID]; ok && !e.At.After(last) || !c.concerns(e, q) {
			return
		}
		sent[e.UID] = e.At
		put(e)
	}
	f := &follower[kubeobject.Event]{
		c: c, kind: KindEvents, namespace: q.Namespace, trouble: trouble,
		begin: func() (func(kubeobject.Event), func()) {
			var events []Event
			still := map[string]bool{}
			add := func(d kubeobject.Event) {
				events = append(events, eventOf(&d))
				still[d.Metadata.UID] = true
			}
			return add, func() {
				maps.DeleteFunc(sent, func(uid string, _ time.Time) bool { return !still[uid] })
				sortEvents(events)
				for _, e := range events {
					once(e)
				}
			}
		},
		set:   func(d kubeobject.Event) { once(eventOf(&d)) },
		unset: func(d kubeobject.Event) { delete(sent, d.Metadata.UID) },
	}
	if err := f.run(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
