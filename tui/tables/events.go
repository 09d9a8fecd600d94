package tables

import (
	"time"

	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Events returns the columns of events, for cnictl events and the filters of the log screen.
func Events() []query.Column[inventory.Event] {
	type row = inventory.Event
	text := query.Words[row]
	return []query.Column[row]{
		{Name: "ago", Header: "AGO", Title: "time since it last happened", Right: true, Unit: "SECONDS",
			Text:   func(r row) string { return show.Since(&r.At, r.Now) },
			Number: func(r row) (float64, bool) { return r.Now.Sub(r.At).Seconds(), true }},
		text("type", "TYPE", "normal or warning", 2, func(r row) string {
			if r.Warning {
				return "warning"
			}
			return "normal"
		}),
		text("from", "FROM", "daemon or kubernetes", 3, func(r row) string { return r.From }),
		text("node", "NODE", "node", 0, func(r row) string { return r.Node }),
		text("what", "WHAT", "kind of event", 0, func(r row) string { return r.What }),
		text("object", "OBJECT", "object it is about", 0, func(r row) string { return r.Object }),
		wide(query.Count("times", "TIMES", "how many times it happened", 0, func(r row) *int { return &r.Count })),
		wide(text("cause", "CAUSE", "cause code of a failure", 0, func(r row) string { return r.Cause })),
		wide(text("component", "BY", "component that reported it", 0, func(r row) string { return r.Component })),
		wide(text("at", "AT", "when it last happened", 0, func(r row) string { return r.At.UTC().Format(time.RFC3339) })),
		text("message", "MESSAGE", "text of the event", 0, func(r row) string { return r.Message }),
	}
}
