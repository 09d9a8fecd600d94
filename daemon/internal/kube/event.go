package kube

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cnictl/daemon/kubeclient"
	"cnictl/daemon/notice"
)

// Names used in events.
const (
	reportingController = "aws-node"
	ownNamespace        = "kube-system" // namespace of the daemon's pod
	nodeEventNamespace  = "default"     // namespace of events about objects without one
)

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
	return c.emit(ctx, e, time.Now())
}

// emit sends an event that happened at a time. It may be repeated if it is unknown whether
// the event arrived: the time is part of its name, and an existing one counts as sent.
func (c *Client) emit(ctx context.Context, e notice.Event, at time.Time) error {
	namespace := cmp.Or(e.About.Namespace, nodeEventNamespace)
	path, err := events.in(namespace)
	if err == nil {
		err = kubeclient.CheckName("object", e.About.Name)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	} else {
		err = c.create(ctx, path, c.eventOf(c.identified(ctx, e), namespace, at))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("emit event %s about %s %s: %w", e.Reason, e.About.Kind, objectKey(e.About.Namespace, e.About.Name), err)
	}
	return nil
}

// identified adds the UID of the object that an event is about. Without it, the event would
// not be shown with the object.
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

func (c *Client) eventOf(e notice.Event, namespace string, at time.Time) eventObject {
	kind := "Normal"
	if e.Warning {
		kind = "Warning"
	}
	return eventObject{
		APIVersion: "events.k8s.io/v1", Kind: "Event",
		Metadata:  eventMeta{Name: eventName(e.About.Name, at), Namespace: namespace},
		EventTime: at.UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		Regarding: objectReference{APIVersion: "v1", Kind: e.About.Kind, Namespace: e.About.Namespace, Name: e.About.Name, UID: e.About.UID},
		Action:    e.Action, Reason: e.Reason, Note: e.Note, Type: kind,
		ReportingController: reportingController, ReportingInstance: c.instance,
	}
}

// eventName returns the object's name and a number, as in kubelet's events. The object's
// name is cut so that the whole is a valid name; no part of one may end in '-' or '.'.
func eventName(about string, at time.Time) string {
	suffix := "." + strconv.FormatInt(at.UnixNano(), 16)
	return strings.TrimRight(about[:min(len(about), kubeclient.MaxName-len(suffix))], "-.") + suffix
}
