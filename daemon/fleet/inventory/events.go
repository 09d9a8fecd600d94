package inventory

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
)

// Event is an event with a unique key, and the time that its age is relative to.
type Event struct {
	document.EventItem
	Key       string
	Now       time.Time
	Namespace string // of the Kubernetes event, or of the pod that a daemon's event is about; "" = none
}

// DaemonEvent returns the row of an event of a node's daemon.
func DaemonEvent(node string, epoch string, e introspect.Event, now time.Time) Event {
	item := document.EventItem{
		At: e.At, From: document.FromDaemon, Node: node, What: string(e.Kind), Object: object(node, e), Message: EventText(e), Cause: e.Cause,
		Count: 1, Warning: EventWarning(e.Kind), Component: "ipamd",
	}
	row := Event{EventItem: item, Key: node + "\x00" + epoch + "\x00" + strconv.FormatUint(e.Seq, 10), Now: now}
	if e.Pod != nil {
		row.Namespace = e.Pod.Namespace
	}
	return row
}

// object returns the object of a daemon event.
func object(node string, e introspect.Event) string {
	if e.Pod != nil {
		return e.Pod.Namespace + "/" + e.Pod.Name
	}
	return cmp.Or(e.ENIID, e.SubnetID, node)
}

// KubernetesEvent returns the row of a Kubernetes event.
func KubernetesEvent(e watch.KubeEvent, now time.Time) Event {
	item := document.EventItem{
		At: e.At, From: document.FromKubernetes, Node: e.Node, What: e.Reason, Object: e.Object, Message: e.Message,
		Count: max(1, e.Count), Warning: e.Type == "Warning", Component: e.Source,
	}
	return Event{EventItem: item, Key: "kubernetes\x00" + cmp.Or(e.UID, e.Namespace+"/"+e.Name), Now: now, Namespace: e.Namespace}
}

// MergeEvents sorts rows by time.
func MergeEvents(rows []Event) {
	slices.SortStableFunc(rows, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
}
