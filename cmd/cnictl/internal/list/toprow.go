package list

import (
	"time"

	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// rateItem returns what a node does per minute.
func rateItem(n *store.Node) document.RateItem {
	out := document.RateItem{Node: n.Metadata.Name, State: n.State, Status: n.Code, StatusText: n.Status()}
	if r := n.Rates; r != nil {
		seconds := r.Over.Seconds()
		out.OverSeconds = &seconds
		for _, p := range []struct {
			to   **float64
			from *float64
		}{{&out.ADDsPerMinute, r.ADDs}, {&out.FailedPerMinute, r.Failed}, {&out.DELsPerMinute, r.DELs}, {&out.EC2PerMinute, r.EC2},
			{&out.EC2ErrorsPerMinute, r.EC2Error}} {
			*p.to = p.from
		}
	}
	if n.Known {
		out.Waiting = n.Summary.WaitingADDs
	}
	if n.Known && len(n.Summary.Cards) > 0 {
		out.Assigned, out.Free = new(n.Assigned), new(n.Free)
	}
	return out
}

// topList sorts by what goes wrong, then by activity.
func topList() *output.List[document.RateItem] {
	return &output.List[document.RateItem]{
		Columns: topColumns(), Free: "state", Clocks: []string{"over"}, Order: "-failed,-ec2errors,-adds,-ec2,node",
		Key:  func(r document.RateItem) string { return r.Node },
		Item: func(r document.RateItem) any { return r },
		Class: func(r document.RateItem, column string) paint.Class {
			bad := func(v *float64) bool { return v != nil && *v > 0 }
			switch {
			case column == "failed" && bad(r.FailedPerMinute), column == "ec2errors" && bad(r.EC2ErrorsPerMinute):
				return paint.Bad
			case column == "waiting" && r.Waiting != nil && *r.Waiting > 0:
				return paint.Warn
			}
			return paint.Plain
		},
	}
}

func topColumns() []query.Column[document.RateItem] {
	type item = document.RateItem
	rate := func(name, header, title string, drop int, of func(item) *float64) query.Column[item] {
		return query.Column[item]{
			Name: name, Header: header, Title: title, Right: true, Drop: drop,
			Text: func(r item) string { return rateText(of(r)) },
			Number: func(r item) (float64, bool) {
				if v := of(r); v != nil {
					return *v, true
				}
				return 0, false
			},
		}
	}
	count := query.Count[item]
	return []query.Column[item]{
		{Name: "node", Header: "NODE", Title: "node", Text: func(r item) string { return r.Node }},
		{Name: "over", Header: "OVER", Drop: 9, Title: "time over which the rates were measured", Right: true, Unit: "SECONDS", Text: overText,
			Number: over},
		rate("adds", "ADD/MIN", "ADDs per minute", 0, func(r item) *float64 { return r.ADDsPerMinute }),
		rate("failed", "FAIL/MIN", "failed ADDs per minute", 0, func(r item) *float64 { return r.FailedPerMinute }),
		rate("dels", "DEL/MIN", "DELs per minute", 2, func(r item) *float64 { return r.DELsPerMinute }),
		rate("ec2", "EC2/MIN", "EC2 calls per minute", 0, func(r item) *float64 { return r.EC2PerMinute }),
		rate("ec2errors", "EC2ERR/MIN", "failed EC2 calls per minute", 0, func(r item) *float64 { return r.EC2ErrorsPerMinute }),
		count("waiting", "WAITING", "ADDs waiting for an address", 1, func(r item) *int { return r.Waiting }),
		count("assigned", "ASSIGNED", "addresses assigned to pods", 4, func(r item) *int { return r.Assigned }).Headed("USED"),
		count("free", "FREE", "addresses available to new pods", 3, func(r item) *int { return r.Free }),
		{Name: "state", Header: "STATUS", Title: "the worst problem, or ok", Least: 19, Text: func(r item) string { return r.StatusText },
			Also: func(r item) string { return r.Status }},
	}
}

func over(r document.RateItem) (float64, bool) {
	if r.OverSeconds == nil {
		return 0, false
	}
	return *r.OverSeconds, true
}

func overText(r document.RateItem) string {
	if r.OverSeconds == nil {
		return show.Unknown
	}
	return human.Age(time.Duration(*r.OverSeconds * float64(time.Second)))
}

// rateText formats a rate that may be unknown.
func rateText(v *float64) string {
	if v == nil {
		return show.Unknown
	}
	return show.Rate(*v)
}
