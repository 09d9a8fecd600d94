package subnets

import (
	"time"

	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/subnets"
)

// row is a subnet with what was measured of it, and the moment that ages are counted to.
type row struct {
	introspect.SubnetItem
	use   store.SubnetUse
	trend subnets.Trend
	now   time.Time
}

// newList is the list of subnets: the columns are named as those of the screen.
func newList() *output.List[row] {
	return &output.List[row]{
		Columns: columns(), Class: class, Clocks: []string{"asof"}, Whole: true,
		Key:  func(r row) string { return r.ID },
		Item: func(r row) any { return r.SubnetItem },
	}
}

func columns() []query.Column[row] {
	text, number := query.Words[row], query.Count[row]
	wide := func(c query.Column[row]) query.Column[row] { c.Wide = true; return c }
	blocks := func(r row) *int { return r.SpoiledBlocks }
	fragmented := number("spoiled28", "FRAGMENTED/28", "/28 blocks fragmented by single IPs, unusable as prefixes", 8, blocks)
	fragmented.CSV = []query.Column[row]{number("spoiled28", "SPOILED/28", "", 0, blocks)}
	rate := func(c query.Column[row]) query.Column[row] { c.Number, c.Unit = perHour, "PER HOUR"; return c }
	return []query.Column[row]{
		{Name: "subnet", Header: "SUBNET", Title: "subnet ID", Text: func(r row) string { return show.Safe(r.ID) }},
		text("zone", "ZONE", "availability zone of its nodes", 6, func(r row) string { return r.Zone }),
		text("cidr", "CIDR", "IPv4 CIDR block", 4, func(r row) string { return r.CIDR }),
		{Name: "full", Header: "FULL", Title: "share in use", Right: true, Unit: "%", Text: percent, Number: full},
		number("free", "FREE", "free addresses, by EC2's last count", 0, func(r row) *int { return r.Available }),
		number("held", "HELD", "addresses held by nodes, including those of the ENIs themselves", 1, func(r row) *int { return &r.Held }),
		number("wasted", "WASTED", "held by nodes but used by no pod", 2, func(r row) *int { return &r.Wasted }),
		number("others", "OTHERS", "used by others: load balancers, databases, nodes that were not read", 5, func(r row) *int { return r.Others }),
		number("free28", "FREE/28", "upper bound of free /28 blocks, each usable as a prefix", 3, func(r row) *int { return r.FreeBlocks }),
		fragmented,
		{Name: "left", Header: "LEFT", Title: "time until no address is free, at the rate seen by --watch or in the recording", Right: true, Unit: "SECONDS", Drop: 7, Text: left, Number: leftSeconds},
		number("nodes", "NODES", "nodes that have ENIs in it or may create them there", 9, func(r row) *int { return &r.Nodes }),
		wide(number("enis", "ENIS", "ENIs in it", 9, func(r row) *int { return &r.ENIs })),
		wide(rate(text("change", "CHANGE", "change of the free addresses per hour and the time it was measured over, with --watch or in a recording", 9, change))),
		{Name: "asof", Header: "AS OF", Title: "age of EC2's count", Right: true, Drop: 10, Unit: "SECONDS", Text: func(r row) string { return show.Since(r.AsOf, r.now) }, Number: asOfSeconds},
	}
}

func full(r row) (float64, bool) { return subnets.FullPercent(r.use) }

func percent(r row) string { return subnets.Percent(r.use) }

// leftSeconds counts as the durations of filters do.
func leftSeconds(r row) (float64, bool) {
	if r.LeftSeconds == nil {
		return 0, false
	}
	return *r.LeftSeconds, true
}

// asOfSeconds is the age of EC2's count.
func asOfSeconds(r row) (float64, bool) {
	if show.Since(r.AsOf, r.now) == show.Unknown {
		return 0, false
	}
	return r.now.Sub(*r.AsOf).Seconds(), true
}

func left(r row) string {
	if r.LeftSeconds == nil {
		return show.Unknown
	}
	return "~" + show.Age(time.Duration(*r.LeftSeconds*float64(time.Second)))
}

// perHour orders changes: what drains fastest is the least.
func perHour(r row) (float64, bool) {
	if len(r.trend) < 2 {
		return 0, false
	}
	return r.trend.Project().PerHour, true
}

// change is the rate at which the free addresses become more or fewer.
func change(r row) string {
	if len(r.trend) < 2 {
		return ""
	}
	return r.trend.Project().FreeChange()
}

// class colours what a cell means.
func class(r row, column string) paint.Class {
	switch column {
	case "free", "full":
		if subnets.Short(r.use) {
			return paint.Bad
		}
	case "left":
		if r.LeftSeconds != nil {
			return paint.Warn
		}
	case "cidr", "zone", "asof":
		return paint.Dim
	}
	return paint.Plain
}
