package events

import (
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

type row = inventory.Event

func newList(grouped func() bool) *output.List[row] {
	all := tables.Events()
	return &output.List[row]{
		Columns: all, Free: "message", Clocks: []string{"ago"},
		Fit: func(args []string) {
			if len(args) == 1 {
				ofOne(all)
			}
			if grouped() {
				counted(all)
			}
		},
		In:   func(r row) string { return r.Namespace },
		Key:  func(r row) string { return r.Key },
		Item: func(r row) any { return r.EventItem },
		Class: func(r row, column string) paint.Class {
			switch {
			case column == "ago" || column == "from":
				return paint.Dim
			case column == "node":
				return paint.Node(r.Node)
			case r.Warning && (column == "what" || column == "type"):
				return paint.Warn
			}
			return paint.Plain
		},
	}
}

// counted shows how many events a row stands for.
func counted(columns []query.Column[row]) {
	for i := range columns {
		if columns[i].Name == "times" {
			columns[i].Wide, columns[i].Drop, columns[i].Empty = false, 1, true
			columns[i].Text = func(r row) string {
				if r.Count < 2 {
					return ""
				}
				return show.Times(r.Count)
			}
		}
	}
}

// ofOne lets a narrow terminal drop the node column first when one node was requested.
func ofOne(columns []query.Column[row]) {
	for i := range columns {
		if columns[i].Name == "node" {
			columns[i].Drop = 4
		}
	}
}
