package tables

import (
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Subnets returns the columns of subnets.
func Subnets() []query.Column[*inventory.Subnet] {
	type row = *inventory.Subnet
	text, number := query.Words[row], query.Count[row]
	blocks := func(r row) *int { return inventory.FragmentedBlocks(r.SubnetUse) }
	change := text("change", "CHANGE",
		"change of the free addresses per hour and the time it was measured over, with --watch or in a recording", 9, change)
	change.Number, change.Unit = perHour, "PER HOUR"
	return []query.Column[row]{
		plain("subnet", "SUBNET", "subnet ID", func(r row) string { return r.ID }),
		text("zone", "ZONE", "availability zone of its nodes", 6, func(r row) string { return r.Zone }),
		text("cidr", "CIDR", "IPv4 CIDR block", 4, func(r row) string { return r.CIDR }),
		{Name: "full", Header: "FULL", Title: "share in use", Right: true, Unit: "%",
			Text:   func(r row) string { return show.OrUnknown(inventory.FullText(r.SubnetUse)) },
			Number: func(r row) (float64, bool) { return inventory.FullPercent(r.SubnetUse) }},
		number("free", "FREE", "free addresses, by EC2's last count", 0, func(r row) *int { return r.Available }),
		number("held", "HELD", "addresses held by nodes, including those of the ENIs themselves", 1, func(r row) *int { return &r.Held }),
		number("wasted", "WASTED", "held by nodes but used by no pod", 2, func(r row) *int { return &r.Wasted }).Headed("HELD FREE"),
		number("others", "OTHERS", "used by others: load balancers, databases, nodes that were not read", 5,
			func(r row) *int { return inventory.OtherAddresses(r.SubnetUse) }),
		number("free28", "FREE/28", "upper bound of free /28 blocks, each usable as a prefix", 3,
			func(r row) *int { return inventory.FreeBlocks(r.SubnetUse) }),
		number("spoiled28", "SPOILED/28", "/28 blocks fragmented by single IPs, unusable as prefixes", 8, blocks).Headed("FRAGMENTED/28"),
		{Name: "left", Header: "LEFT", Unit: "SECONDS",
			Title:  "time until no address is free and how sure that is, from the counts that the daemons kept, of --watch or of the recording",
			Text:   func(r row) string { return show.OrUnknown(r.Forecast.Words()) },
			Number: func(r row) (float64, bool) { return r.Forecast.Seconds() }},
		number("nodes", "NODES", "nodes that have ENIs in it or may create them there", 9, func(r row) *int { return &r.Nodes }),
		wide(number("enis", "ENIS", "ENIs in it", 9, func(r row) *int { return &r.ENIs })),
		wide(change),
		{Name: "asof", Header: "AS OF", Title: "age of EC2's count", Right: true, Drop: 10, Unit: "SECONDS",
			Text: func(r row) string { return show.Since(r.AsOf, r.Now) }, Number: asOfSeconds},
	}
}

// asOfSeconds returns the age of EC2's count.
func asOfSeconds(r *inventory.Subnet) (float64, bool) {
	if show.Since(r.AsOf, r.Now) == show.Unknown {
		return 0, false
	}
	return r.Now.Sub(*r.AsOf).Seconds(), true
}

// perHour sorts the subnet that drains fastest first.
func perHour(r *inventory.Subnet) (float64, bool) { return r.Forecast.PerHour, r.Forecast.Measured() }

// change returns the rate at which the number of free addresses changes.
func change(r *inventory.Subnet) string {
	if !r.Forecast.Measured() {
		return ""
	}
	return r.Forecast.FreeChange()
}
