package events

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/pod"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/cluster"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
)

// row is an event with what tells it from others, and the clock for its age.
type row struct {
	introspect.EventItem
	key string
	now time.Time
}

// warnings are the daemon's events that mean that something went wrong.
var warnings = []introspect.EventKind{
	introspect.EventADDFailed, introspect.EventDELFailed, introspect.EventPoolMissed, introspect.EventActionFailed, introspect.EventENIVanished,
	introspect.EventBackoffStarted, introspect.EventSubnetShort, introspect.EventSubnetsFailed, introspect.EventQuarantined, introspect.EventReconcileFailed,
	introspect.EventMissedDEL, introspect.EventSweepFailed, introspect.EventCheckpointFailed, introspect.EventENIConfigFailed, introspect.EventGroupsFailed,
	introspect.EventTrunkLost, introspect.EventTrunkGivenUp, introspect.EventGap,
}

// ofDaemon says an event of a node's daemon.
func ofDaemon(node string, epoch string, e introspect.Event, now time.Time) row {
	item := introspect.EventItem{
		At: e.At, From: introspect.FromDaemon, Node: node, What: string(e.Kind), Object: object(node, e), Message: pod.EventText(e), Cause: e.Cause,
		Count: 1, Warning: slices.Contains(warnings, e.Kind), Component: "ipamd",
	}
	return row{item, node + "\x00" + epoch + "\x00" + strconv.FormatUint(e.Seq, 10), now}
}

// object is what an event of a daemon is about.
func object(node string, e introspect.Event) string {
	if e.Pod != nil {
		return e.Pod.Namespace + "/" + e.Pod.Name
	}
	return cmp.Or(e.ENIID, e.SubnetID, node)
}

// ofKubernetes says an event of the API server.
func ofKubernetes(e cluster.Event, now time.Time) row {
	item := introspect.EventItem{
		At: e.At, From: introspect.FromKubernetes, Node: e.Node, What: e.Reason, Object: e.Object, Message: e.Message,
		Count: max(1, e.Count), Warning: e.Type == "Warning", Component: e.Source,
	}
	return row{item, "kubernetes\x00" + cmp.Or(e.UID, e.Namespace+"/"+e.Name), now}
}

func newList() *output.List[row] {
	return &output.List[row]{
		Columns: columns(), Free: "message", Clocks: []string{"ago"},
		Key:  func(r row) string { return r.key },
		Item: func(r row) any { return r.EventItem },
		Class: func(r row, column string) paint.Class {
			switch {
			case column == "ago" || column == "from":
				return paint.Dim
			case r.Warning && (column == "what" || column == "type"):
				return paint.Warn
			}
			return paint.Plain
		},
	}
}

func columns() []query.Column[row] {
	text := func(name, header, title string, of func(row) string) query.Column[row] {
		return query.Column[row]{Name: name, Header: header, Title: title, Text: func(r row) string { return show.Safe(show.OrUnknown(of(r))) }}
	}
	drop := func(c query.Column[row], n int) query.Column[row] { c.Drop = n; return c }
	wide := func(c query.Column[row]) query.Column[row] { c.Wide = true; return c }
	return []query.Column[row]{
		{Name: "ago", Header: "AGO", Title: "time since it last happened", Right: true, Unit: "SECONDS",
			Text:   func(r row) string { return show.Since(&r.At, r.now) },
			Number: func(r row) (float64, bool) { return r.now.Sub(r.At).Seconds(), true }},
		drop(text("type", "TYPE", "normal or warning", func(r row) string {
			if r.Warning {
				return "warning"
			}
			return "normal"
		}), 2),
		drop(text("from", "FROM", "daemon or kubernetes", func(r row) string { return r.From }), 3),
		text("node", "NODE", "node", func(r row) string { return r.Node }),
		text("what", "WHAT", "kind of event", func(r row) string { return r.What }),
		text("object", "OBJECT", "object it is about", func(r row) string { return r.Object }),
		{Name: "times", Header: "TIMES", Title: "how many times it happened", Right: true, Wide: true,
			Text: func(r row) string { return strconv.Itoa(r.Count) }, Number: func(r row) (float64, bool) { return float64(r.Count), true }},
		wide(text("cause", "CAUSE", "cause code of a failure", func(r row) string { return r.Cause })),
		wide(text("component", "BY", "component that reported it", func(r row) string { return r.Component })),
		wide(text("at", "AT", "when it last happened", func(r row) string { return r.At.UTC().Format(time.RFC3339) })),
		text("message", "MESSAGE", "text of the event", func(r row) string { return r.Message }),
	}
}

// ofOne lets the name of the one node asked for go first where a terminal has no room.
func ofOne(columns []query.Column[row]) {
	for i := range columns {
		if columns[i].Name == "node" {
			columns[i].Drop = 4
		}
	}
}

// merge puts rows into the order of their times.
func merge(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.key, b.key)) })
}
