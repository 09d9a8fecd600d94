package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/notice"
)

// Names that events carry.
const (
	reportingController = "aws-node"
	ownNamespace        = "kube-system" // of the daemon's pod
	nodeEventNamespace  = "default"     // of events about objects without one
	maxInstanceName     = 128
)

// maxWaitingEvents bounds the events that wait to be sent.
const maxWaitingEvents = 64

// eventObject is an event of events.k8s.io/v1.
type eventObject struct {
	APIVersion          string          `json:"apiVersion"`
	Kind                string          `json:"kind"`
	Metadata            eventMeta       `json:"metadata"`
	EventTime           string          `json:"eventTime"`
	ReportingController string          `json:"reportingController"`
	ReportingInstance   string          `json:"reportingInstance"`
	Action              string          `json:"action"`
	Reason              string          `json:"reason"`
	Regarding           objectReference `json:"regarding"`
	Note                string          `json:"note"`
	Type                string          `json:"type"`
}

type eventMeta struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type objectReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// OwnPod refers to the daemon's own pod.
func (c *Client) OwnPod() notice.Ref {
	return notice.Ref{Kind: "Pod", Namespace: ownNamespace, Name: c.opts.PodName}
}

// OwnNode refers to the node.
func (c *Client) OwnNode() notice.Ref {
	return notice.Ref{Kind: "Node", Name: c.opts.NodeName}
}

// Emit sends an event now.
func (c *Client) Emit(ctx context.Context, e notice.Event) error {
	namespace := cmp.Or(e.About.Namespace, nodeEventNamespace)
	path, err := events.in(namespace)
	if err == nil {
		err = checkName("object", e.About.Name)
	}
	if err == nil {
		err = c.create(ctx, path, c.eventOf(c.identified(ctx, e), namespace, time.Now()))
	}
	if err != nil {
		return fmt.Errorf("emit event %s about %s %s: %w", e.Reason, e.About.Kind, objectKey(e.About.Namespace, e.About.Name), err)
	}
	return nil
}

// identified completes what an event is about. Without a UID it would be shown, but
// not with the object.
func (c *Client) identified(ctx context.Context, e notice.Event) notice.Event {
	switch {
	case e.About.UID != "":
	case e.About.Kind == "Node":
		e.About.UID = e.About.Name // as kubelet does; kubectl looks for it
	case e.About.Kind == "Pod":
		if pod, err := c.Pod(ctx, e.About.Namespace, e.About.Name); err == nil {
			e.About.UID = pod.UID
		}
	}
	return e
}

func (c *Client) eventOf(e notice.Event, namespace string, now time.Time) eventObject {
	instance := cmp.Or(c.opts.PodName, c.opts.NodeName, reportingController)
	kind := "Normal"
	if e.Warning {
		kind = "Warning"
	}
	// The name is the object's and a number, as kubelet's events have it; the object's
	// is cut so that the whole stays a name.
	suffix := "." + strconv.FormatInt(now.UnixNano(), 16)
	name := e.About.Name[:min(len(e.About.Name), maxName-len(suffix))] + suffix
	return eventObject{
		APIVersion: "events.k8s.io/v1", Kind: "Event",
		Metadata:  eventMeta{Name: name, Namespace: namespace},
		EventTime: now.UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		Regarding: objectReference{APIVersion: "v1", Kind: e.About.Kind, Namespace: e.About.Namespace, Name: e.About.Name, UID: e.About.UID},
		Action:    e.Action, Reason: e.Reason, Note: e.Note, Type: kind,
		ReportingController: reportingController, ReportingInstance: instance[:min(len(instance), maxInstanceName)],
	}
}

// outbox holds the events that wait to be sent.
type outbox struct {
	waiting chan notice.Event
	dropped atomic.Uint64

	mu      sync.Mutex
	limiter *notice.Limiter // under mu
}

func newOutbox(p notice.Policy) *outbox {
	return &outbox{waiting: make(chan notice.Event, maxWaitingEvents), limiter: notice.NewLimiter(p)}
}

// EmitLater hands an event to Run, which sends it. It never blocks: what is too much
// of the same is held back, and what cannot wait is dropped.
func (c *Client) EmitLater(e notice.Event) {
	c.events.mu.Lock()
	suppressed, ok := c.events.limiter.Allow(time.Now(), e)
	c.events.mu.Unlock()
	if !ok {
		return
	}
	select {
	case c.events.waiting <- e.Repeated(suppressed):
	default:
		c.events.dropped.Add(1)
	}
}

// DroppedEvents counts the events that could not be sent or had no place to wait.
func (c *Client) DroppedEvents() uint64 { return c.events.dropped.Load() }

// sendEvents sends what waits until ctx ends. An event that fails is dropped: it is a
// help to people, and whoever wants to know finds the cause in the log.
func (c *Client) sendEvents(ctx context.Context) {
	failing := false
	for {
		select {
		case e := <-c.events.waiting:
			err := c.Emit(ctx, e)
			if err != nil && !errors.Is(err, context.Canceled) {
				c.events.dropped.Add(1)
			}
			switch {
			case err != nil && !failing && ctx.Err() == nil:
				c.log.Warn("events cannot be sent", slog.Any(logline.KeyError, err))
			case err == nil && failing:
				c.log.Info("events can be sent again")
			}
			failing = err != nil
		case <-ctx.Done():
			return
		}
	}
}
