package events

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Row is an event with a unique key, and the time that its age is relative to.
type Row struct {
	document.EventItem
	Key       string
	Now       time.Time
	Namespace string // of the Kubernetes event, or of the pod that a daemon's event is about; "" = none
}

// OfDaemon returns the row of an event of a node's daemon.
func OfDaemon(node string, epoch string, e introspect.Event, now time.Time) Row {
	item := document.EventItem{
		At: e.At, From: document.FromDaemon, Node: node, What: string(e.Kind), Object: object(node, e), Message: Text(e), Cause: e.Cause,
		Count: 1, Warning: Warning(e.Kind), Component: "ipamd",
	}
	row := Row{EventItem: item, Key: node + "\x00" + epoch + "\x00" + strconv.FormatUint(e.Seq, 10), Now: now}
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

// OfKubernetes returns the row of a Kubernetes event.
func OfKubernetes(e watch.KubeEvent, now time.Time) Row {
	item := document.EventItem{
		At: e.At, From: document.FromKubernetes, Node: e.Node, What: e.Reason, Object: e.Object, Message: e.Message,
		Count: max(1, e.Count), Warning: e.Type == "Warning", Component: e.Source,
	}
	return Row{EventItem: item, Key: "kubernetes\x00" + cmp.Or(e.UID, e.Namespace+"/"+e.Name), Now: now, Namespace: e.Namespace}
}

// Columns returns the columns of events, for cnictl events and the filters of the log screen.
func Columns() []query.Column[Row] {
	wide := func(c query.Column[Row]) query.Column[Row] { c.Wide = true; return c }
	return []query.Column[Row]{
		{Name: "ago", Header: "AGO", Title: "time since it last happened", Right: true, Unit: "SECONDS",
			Text:   func(r Row) string { return show.Since(&r.At, r.Now) },
			Number: func(r Row) (float64, bool) { return r.Now.Sub(r.At).Seconds(), true }},
		query.Words("type", "TYPE", "normal or warning", 2, func(r Row) string {
			if r.Warning {
				return "warning"
			}
			return "normal"
		}),
		query.Words("from", "FROM", "daemon or kubernetes", 3, func(r Row) string { return r.From }),
		query.Words("node", "NODE", "node", 0, func(r Row) string { return r.Node }),
		query.Words("what", "WHAT", "kind of event", 0, func(r Row) string { return r.What }),
		query.Words("object", "OBJECT", "object it is about", 0, func(r Row) string { return r.Object }),
		{Name: "times", Header: "TIMES", Title: "how many times it happened", Right: true, Wide: true,
			Text: func(r Row) string { return strconv.Itoa(r.Count) }, Number: func(r Row) (float64, bool) { return float64(r.Count), true }},
		wide(query.Words("cause", "CAUSE", "cause code of a failure", 0, func(r Row) string { return r.Cause })),
		wide(query.Words("component", "BY", "component that reported it", 0, func(r Row) string { return r.Component })),
		wide(query.Words("at", "AT", "when it last happened", 0, func(r Row) string { return r.At.UTC().Format(time.RFC3339) })),
		query.Words("message", "MESSAGE", "text of the event", 0, func(r Row) string { return r.Message }),
	}
}

// Merge sorts rows by time.
func Merge(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Key, b.Key)) })
}
