package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
)

// Detail reads documents of one node, each with a separate reason if it fails. It asks
// upstream only for what upstream serves, and no more often than upstream may be sampled: in
// between it returns the addresses that upstream last reported.
func (l *Live) Detail(ctx context.Context, node string, want watch.Want, q watch.Query) watch.Detail {
	d := &detail{l: l, out: watch.Detail{Node: node, Errors: map[watch.Want]document.NodeError{}}}
	l.mu.Lock()
	if d.m = l.members[node]; d.m != nil {
		d.source, d.summary, d.object = d.m.source, d.m.summary, d.m.target.Object
	}
	l.mu.Unlock()
	var kubernetes sync.WaitGroup
	kubernetes.Go(func() { d.kubernetes(ctx, want, q) })
	d.documents(ctx, want, q)
	kubernetes.Wait()
	d.containerLog(ctx, want, q)
	d.out.At = l.opts.Now()
	return d.out
}

// detail is one running Detail call.
type detail struct {
	l       *Live
	m       *member
	source  string
	object  *document.NodeObject
	summary *introspect.Summary
	lost    *document.NodeError // set if the node cannot be reached: further requests are pointless

	mu  sync.Mutex // guards out.Errors while the node and Kubernetes are asked concurrently
	out watch.Detail
}

func (d *detail) fail(want watch.Want, e document.NodeError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.Errors[want] = e
}

// kubernetes reads what Kubernetes knows about the node.
func (d *detail) kubernetes(ctx context.Context, want watch.Want, q watch.Query) {
	k := &d.l.opts.Kubernetes
	var asking sync.WaitGroup
	asking.Go(func() {
		askKubernetes(d, want&watch.WantPods, k.Pods != nil, &d.out.Pods, func() ([]watch.Pod, error) { return k.Pods(ctx, d.out.Node) })
	})
	asking.Go(func() {
		askKubernetes(d, want&watch.WantKubeEvents, k.Events != nil, &d.out.KubeEvents, func() ([]watch.KubeEvent, error) {
			return d.l.kubeEvents(ctx, d.out.Node, q.KubeEventsSince)
		})
	})
	asking.Go(func() {
		askKubernetes(d, want&watch.WantNodeUse, k.Use != nil, &d.out.Use, func() (*watch.NodeUse, error) {
			u, err := k.Use(ctx, d.out.Node)
			return &u, err
		})
	})
	asking.Go(func() {
		askKubernetes(d, want&watch.WantClusterPods, k.AllPods != nil, &d.out.ClusterPods,
			func() (*watch.ClusterPods, error) { return k.AllPods(ctx, q.Find) })
	})
	asking.Wait()
}

func askKubernetes[T any](d *detail, want watch.Want, asked bool, into *T, ask func() (T, error)) {
	switch {
	case want == 0:
		return
	case !asked:
		d.fail(want, document.NodeError{Reason: introspect.ReasonNotServed, Message: "there is no API server to ask"})
		return
	}
	got, err := fleet.Recover(ask)
	if err != nil {
		d.fail(want, *fleet.ErrorOf(err))
		return
	}
	*into = got
}

// lastEvents are the events that Kubernetes last returned for a node.
type lastEvents struct {
	node   string
	since  time.Time
	at     time.Time
	events []watch.KubeEvent
}

// kubeEventsEvery is how long the events of a node are reused: reading them takes several
// requests that the API server answers from its storage.
const kubeEventsEvery = 10 * time.Second

// kubeEvents returns the events that Kubernetes has for a node.
func (l *Live) kubeEvents(ctx context.Context, node string, since time.Time) ([]watch.KubeEvent, error) {
	l.mu.Lock()
	last := l.lastEvents
	l.mu.Unlock()
	if last.node == node && last.since.Equal(since) && l.opts.Now().Sub(last.at) < kubeEventsEvery {
		return last.events, nil
	}
	events, err := l.opts.Kubernetes.Events(ctx, node, since)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.lastEvents = lastEvents{node, since, l.opts.Now(), events}
	l.mu.Unlock()
	return events, nil
}

// containerLog reads the log of the daemon's container, unless the daemon served its log.
func (d *detail) containerLog(ctx context.Context, want watch.Want, q watch.Query) {
	if e, failed := d.out.Errors[watch.WantLogs]; want&watch.WantLogs != 0 {
		if !failed || e.Reason == introspect.ReasonBusy || e.Reason == introspect.ReasonBadRequest || e.Reason == introspect.ReasonCancelled {
			return // the daemon served it, or may next time
		}
	}
	k := &d.l.opts.Kubernetes
	askKubernetes(d, want&watch.WantContainerLog, k.ContainerLog != nil, &d.out.ContainerLog, func() (*watch.ContainerLog, error) {
		if d.object == nil || d.object.Daemon == nil {
			return nil, &client.Error{Address: d.out.Node, Reason: introspect.ReasonNoPod, Err: errors.New("no aws-node pod is known on the node")}
		}
		log, err := k.ContainerLog(ctx, *d.object.Daemon, q.Container)
		if err != nil {
			return nil, err
		}
		return &log, nil
	})
}

// documents reads the daemon's documents sequentially over one connection.
func (d *detail) documents(ctx context.Context, want watch.Want, q watch.Query) {
	switch {
	case d.m == nil:
		d.lost = &document.NodeError{Reason: introspect.ReasonNotFound, Message: "node not found"}
	case d.m.reader == nil:
		d.lost = &document.NodeError{Reason: introspect.ReasonUnresolved, Message: "its address is invalid"}
	default:
		defer d.close()
	}
	d.one(want&watch.WantENIs, func() error { return d.enis(ctx) })
	readInto(ctx, d, want&watch.WantPlan, &d.out.Plan, func(ctx context.Context, c *client.Client) (introspect.NodePlan, error) {
		doc, _, err := c.Plan(ctx, q.Plan)
		return doc, err
	})
	readInto(ctx, d, want&watch.WantEvents, &d.out.Events, func(ctx context.Context, c *client.Client) (introspect.NodeEvents, error) {
		return c.Events(ctx, client.Cursor{Epoch: q.Events.Epoch, Seq: q.Events.Next}, client.EventsOptions{})
	})
	readInto(ctx, d, want&watch.WantFailures, &d.out.Failures, func(ctx context.Context, c *client.Client) (introspect.NodeFailures, error) {
		doc, _, err := c.Failures(ctx)
		return doc, err
	})
	readInto(ctx, d, want&watch.WantConfig, &d.out.Config,
		func(ctx context.Context, c *client.Client) (introspect.NodeConfig, error) { return c.Config(ctx) })
	readInto(ctx, d, want&watch.WantPod, &d.out.Pod, func(ctx context.Context, c *client.Client) (introspect.NodePod, error) {
		doc, _, err := c.Pod(ctx, q.Pod)
		return doc, err
	})
	readInto(ctx, d, want&watch.WantLogs, &d.out.Logs,
		func(ctx context.Context, c *client.Client) (introspect.NodeLogs, error) { return c.Logs(ctx, q.Logs) })
}

// one reads one document if it is wanted.
func (d *detail) one(want watch.Want, read func() error) {
	if want == 0 {
		return
	}
	if d.lost != nil {
		d.fail(want, *d.lost)
		return
	}
	err := read()
	if err == nil {
		return
	}
	e := fleet.ErrorOf(err)
	d.fail(want, *e)
	switch e.Reason {
	case introspect.ReasonNotFound, introspect.ReasonNotServed, introspect.ReasonBadRequest, introspect.ReasonBusy,
		introspect.ReasonMalformed, introspect.ReasonNotJSON, introspect.ReasonTooLarge, introspect.ReasonStatus:
		// It answers, and may serve the others.
	case introspect.ReasonNoEndpoint:
		if d.source == "" && want != watch.WantENIs { // probably upstream, which logs each request
			d.lost = e
		}
	default:
		d.lost = e
	}
}

// readInto reads one document that only our daemon serves, if it is wanted.
func readInto[T any](ctx context.Context, d *detail, want watch.Want, into **T, read func(context.Context, *client.Client) (T, error)) {
	d.one(want, func() error {
		doc, err := ask(ctx, d, read)
		if err == nil {
			*into = &doc
		}
		return err
	})
}

// ask requests a document that only our daemon serves.
func ask[T any](ctx context.Context, d *detail, read func(context.Context, *client.Client) (T, error)) (T, error) {
	if d.source == document.SourceV1 {
		var none T
		return none, &client.Error{Address: d.out.Node, Reason: introspect.ReasonNoEndpoint, Err: introspect.ErrCommands}
	}
	ctx, cancel := context.WithTimeout(ctx, d.l.nodeTimeout())
	defer cancel()
	return fleet.Ask(ctx, d.m.reader, read)
}

func (l *Live) nodeTimeout() time.Duration {
	if l.opts.NodeTimeout > 0 {
		return l.opts.NodeTimeout
	}
	return fleet.DefaultNodeTimeout
}

func (d *detail) enis(ctx context.Context) error {
	if d.source == document.SourceV1 {
		if done, err := d.keptENIs(); done {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.l.nodeTimeout())
	defer cancel()
	enis, _, err := d.m.reader.ENIs(ctx, d.summary)
	if err != nil {
		return err
	}
	d.out.ENIs = enis
	if d.source == document.SourceV1 {
		d.l.mu.Lock()
		d.m.enis, d.m.enisAt = enis, d.l.opts.Now()
		d.l.mu.Unlock()
	}
	return nil
}

// keptENIs returns the addresses that upstream last reported; done is false if upstream may
// be asked again, which keptENIs then records in the
// plan.
func (d *detail) keptENIs() (done bool, _ error) {
	l := d.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.opts.Now()
	if d.m.enis != nil && now.Sub(d.m.enisAt) < UpstreamMin {
		d.out.ENIs = d.m.enis
		return true, nil
	}
	if l.plan.Allows(d.out.Node, now) {
		l.plan.Touch(d.out.Node, now)
		return false, nil
	}
	if d.m.enis != nil {
		d.out.ENIs = d.m.enis
		return true, nil
	}
	return true, &client.Error{Address: d.out.Node, Reason: introspect.ReasonBusy,
		Err: fmt.Errorf("the upstream daemon is read at most every %s", UpstreamMin)}
}

// close ends the connection to a node that is not on the screen.
func (d *detail) close() {
	d.l.mu.Lock()
	keep := d.l.plan.Keeps(d.out.Node)
	d.l.mu.Unlock()
	if !keep {
		d.m.reader.Close()
	}
}
