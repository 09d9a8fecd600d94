package subnets

import (
	"time"

	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Row is a subnet with its trend, and the time that ages are relative to.
type Row struct {
	store.SubnetUse
	Trend    Trend
	Forecast Forecast // of Trend
	Now      time.Time
}

// NewRow returns the row of a subnet.
func NewRow(u store.SubnetUse, now time.Time) *Row { return Forecasts{}.Row(u, now) }

// Columns returns the columns of subnets, for cnictl subnets and the screen.
func Columns() []query.Column[*Row] {
	text, number := query.Words[*Row], query.Count[*Row]
	wide := func(c query.Column[*Row]) query.Column[*Row] { c.Wide = true; return c }
	blocks := func(r *Row) *int { return Fragmented(r.SubnetUse) }
	fragmented := number("spoiled28", "FRAGMENTED/28", "/28 blocks fragmented by single IPs, unusable as prefixes", 8, blocks)
	fragmented.CSV = []query.Column[*Row]{number("spoiled28", "SPOILED/28", "", 0, blocks)}
	unused := number("wasted", "HELD FREE", "held by nodes but used by no pod", 2, func(r *Row) *int { return &r.Wasted })
	unused.CSV = []query.Column[*Row]{number("wasted", "WASTED", "", 0, func(r *Row) *int { return &r.Wasted })}
	rate := func(c query.Column[*Row]) query.Column[*Row] { c.Number, c.Unit = perHour, "PER HOUR"; return c }
	return []query.Column[*Row]{
		{Name: "subnet", Header: "SUBNET", Title: "subnet ID", Text: func(r *Row) string { return show.Safe(r.ID) }},
		text("zone", "ZONE", "availability zone of its nodes", 6, func(r *Row) string { return r.Zone }),
		text("cidr", "CIDR", "IPv4 CIDR block", 4, func(r *Row) string { return r.CIDR }),
		{Name: "full", Header: "FULL", Title: "share in use", Right: true, Unit: "%",
			Text: func(r *Row) string { return Percent(r.SubnetUse) }, Number: func(r *Row) (float64, bool) { return FullPercent(r.SubnetUse) }},
		number("free", "FREE", "free addresses, by EC2's last count", 0, func(r *Row) *int { return r.Available }),
		number("held", "HELD", "addresses held by nodes, including those of the ENIs themselves", 1, func(r *Row) *int { return &r.Held }),
		unused,
		number("others", "OTHERS", "used by others: load balancers, databases, nodes that were not read", 5, func(r *Row) *int { return Others(r.SubnetUse) }),
		number("free28", "FREE/28", "upper bound of free /28 blocks, each usable as a prefix", 3, func(r *Row) *int { return Free(r.SubnetUse) }),
		fragmented,
		{Name: "left", Header: "LEFT", Title: "time until no address is free and how sure that is, from the counts of --watch or of the recording", Unit: "SECONDS", Drop: 7, Text: left, Number: leftSeconds},
		number("nodes", "NODES", "nodes that have ENIs in it or may create them there", 9, func(r *Row) *int { return &r.Nodes }),
		wide(number("enis", "ENIS", "ENIs in it", 9, func(r *Row) *int { return &r.ENIs })),
		wide(rate(text("change", "CHANGE", "change of the free addresses per hour and the time it was measured over, with --watch or in a recording", 9, change))),
		{Name: "asof", Header: "AS OF", Title: "age of EC2's count", Right: true, Drop: 10, Unit: "SECONDS", Text: func(r *Row) string { return show.Since(r.AsOf, r.Now) }, Number: asOfSeconds},
	}
}

// leftSeconds is in the unit of durations in filters.
func leftSeconds(r *Row) (float64, bool) { return r.Forecast.Seconds() }

func left(r *Row) string { return show.OrUnknown(r.Forecast.Words()) }

// asOfSeconds returns the age of EC2's count.
func asOfSeconds(r *Row) (float64, bool) {
	if show.Since(r.AsOf, r.Now) == show.Unknown {
		return 0, false
	}
	return r.Now.Sub(*r.AsOf).Seconds(), true
}

// perHour sorts the subnet that drains fastest first.
func perHour(r *Row) (float64, bool) { return r.Forecast.PerHour, len(r.Trend) > 1 }

// change returns the rate at which the number of free addresses changes.
func change(r *Row) string {
	if len(r.Trend) < 2 {
		return ""
	}
	return r.Forecast.FreeChange()
}
