package introspect

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Bounds of what Summary.Check accepts: so far above what AWS and Kubernetes allow that
// only nonsense exceeds them, and low enough that sums over a fleet stay exact.
const (
	maxList      = 4096    // items of a list
	maxSmall     = 1 << 20 // items on one node: ENIs, slots, pods, IPv4 addresses
	maxIPv6      = 1 << 50 // addresses of one node, four /80s; 8,000 nodes fit an int64
	maxSetting   = math.MaxInt32
	maxCounter   = 1 << 40 // events since start
	maxDurations = 1e9     // seconds
)

// Check refuses a summary with impossible numbers. The error names the first such member.
func (s *Summary) Check() error {
	var c check
	c.text("version", s.Version)
	c.text("node", s.Node)
	c.text("instanceId", s.InstanceID)
	c.text("instanceType", s.InstanceType)
	c.text("ipFamily", s.IPFamily)
	if c.list("cards", len(s.Cards), maxCards) {
		c.cards(s.Cards, s.IPFamily)
	}
	if c.list("enis", len(s.ENIs), maxENIs) {
		c.enis(s.ENIs, s.IPFamily)
	}
	c.known("targets.warmEni", s.Targets.WarmENI, maxSetting)
	c.known("targets.warmIp", s.Targets.WarmIP, maxSetting)
	c.known("targets.minimumIp", s.Targets.MinimumIP, maxSetting)
	c.known("targets.warmPrefix", s.Targets.WarmPrefix, maxSetting)
	c.known("targets.maxEni", s.Targets.MaxENI, maxSetting)
	c.maxPods(s.MaxPods)
	if t := s.Trunk; t != nil {
		c.text("trunk.eniId", t.ENIID)
		c.known("trunk.branchLimit", t.BranchLimit, maxSmall)
		c.known("trunk.branchUsed", t.BranchUsed, maxSmall)
		c.known("trunk.branchWaiting", t.BranchWaiting, maxSmall)
	}
	if v := s.CooldownSeconds; v != nil && (*v < 0 || *v > maxDurations) {
		c.refuse("cooldownSeconds is %g", *v)
	}
	c.known("waitingAdds", s.WaitingADDs, maxSmall)
	c.known("unplaced", s.Unplaced, maxSmall)
	c.known("configProblems", s.ConfigProblems, maxSmall)
	c.lists(s)
	c.requests("adds", s.ADDs)
	c.requests("dels", s.DELs)
	return c.err
}

// check keeps the first problem found.
type check struct{ err error }

func (c *check) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *check) count(name string, n, most int) {
	if n < 0 || n > most {
		c.refuse("%s is %d", name, n)
	}
}

// known checks a count that may be null.
func (c *check) known(name string, n *int, most int) {
	if n != nil {
		c.count(name, *n, most)
	}
}

func (c *check) stated(name string, s *StatedLimit) {
	if s != nil {
		c.count(name+".limit", s.Limit, maxSmall)
		c.count(name+".ofType", s.OfType, maxSmall)
	}
}

func (c *check) text(name, s string) {
	if len(s) > maxName {
		c.refuse("%s has %d bytes", name, len(s))
	}
}

func (c *check) list(name string, n, most int) bool {
	if n > most {
		c.refuse("%s has %d items", name, n)
	}
	return n <= most
}

func (c *check) cards(cards []CardSummary, family string) {
	addresses := maxSmall
	if family == "ipv6" {
		addresses = maxIPv6
	}
	seen := map[int]bool{}
	limits, totals := 0, 0
	for i, card := range cards {
		at := func(member string) string { return fmt.Sprintf("cards[%d].%s", i, member) }
		c.count(at("card"), card.Card, maxCards-1)
		if seen[card.Card] {
			c.refuse("%s is %d for the second time", at("card"), card.Card)
		}
		seen[card.Card] = true
		c.text(at("mode"), card.Mode)
		c.known(at("enis"), card.ENIs, maxENIs)
		c.known(at("otherEnis"), card.OtherENIs, maxENIs)
		c.known(at("eniLimit"), card.ENILimit, maxENIs)
		c.known(at("slotsPerEni"), card.SlotsPerENI, maxSmall)
		c.stated(at("statedEniLimit"), card.StatedENILimit)
		c.stated(at("statedSlotsPerEni"), card.StatedSlots)
		c.known(at("addressLimit"), card.AddressLimit, addresses)
		c.count(at("total"), card.Total, addresses)
		c.parts(at, card)
		if c.err != nil {
			return
		}
		totals += card.Total
		if card.AddressLimit != nil {
			limits += *card.AddressLimit
		}
		c.count("the sum of cards[].total", totals, addresses)
		c.count("the sum of cards[].addressLimit", limits, addresses)
	}
}

func (c *check) enis(enis []ENISummary, family string) {
	addresses := maxSmall
	if family == "ipv6" {
		addresses = maxIPv6
	}
	for i, e := range enis {
		at := func(member string) string { return fmt.Sprintf("enis[%d].%s", i, member) }
		c.text(at("id"), e.ID)
		c.count(at("card"), e.Card, maxCards-1)
		c.count(at("device"), e.Device, maxENIs)
		c.count(at("total"), e.Total, addresses)
		c.split(at, e.Total, e.Assigned, e.Cooling, e.Free)
		if !c.list(at("flags"), len(e.Flags), maxList) || c.err != nil {
			return
		}
	}
}

// parts checks that the parts of a card's pool do not exceed their total.
func (c *check) parts(at func(string) string, card CardSummary) {
	c.split(at, card.Total, card.Assigned, orZero(card.Cooling), card.Free)
	if c.err != nil {
		return
	}
	c.known(at("prefixes"), card.Prefixes, maxCIDRs)
	if free, all := orZero(card.FreePrefixes), orZero(card.Prefixes); free < 0 || free > all {
		c.refuse("%s is %d of %d prefixes", at("freePrefixes"), free, all)
	}
}

// orZero counts an unknown part as 0.
func orZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// split checks that the parts of a total are not negative and fit into it.
func (c *check) split(at func(string) string, total, assigned, cooling, free int) {
	left := total
	for _, p := range []struct {
		name string
		n    int
	}{{"assigned", assigned}, {"cooling", cooling}, {"free", free}} {
		if p.n < 0 || p.n > left {
			c.refuse("%s is %d of a total of %d", at(p.name), p.n, total)
			return
		}
		left -= p.n
	}
}

func (c *check) maxPods(m *MaxPods) {
	if m == nil {
		return
	}
	c.text("maxPods.source", m.Source)
	c.text("maxPods.verdict", m.Verdict)
	c.known("maxPods.value", m.Value, maxSetting)
	c.known("maxPods.ipCapacity", m.IPCapacity, maxSetting)
	c.known("maxPods.totalCapacity", m.TotalCapacity, maxSetting)
	c.known("maxPods.recommended", m.Recommended, maxSetting)
	c.count("maxPods.atRisk", m.AtRisk, maxSetting)
	if !c.list("maxPods.terms", len(m.Terms), maxList) {
		return
	}
	for i, t := range m.Terms {
		c.text(fmt.Sprintf("maxPods.terms[%d].name", i), t.Name)
		c.count(fmt.Sprintf("maxPods.terms[%d].value", i), t.Value, maxSetting)
	}
}

func (c *check) lists(s *Summary) {
	c.list("operations", len(s.Operations), maxList)
	c.list("backoffs", len(s.Backoffs), maxList)
	c.list("subnets", len(s.Subnets), maxList)
	c.list("lastErrors", len(s.LastErrors), maxList)
	c.list("ec2Calls", len(s.EC2Calls), maxList)
	if c.err != nil {
		return
	}
	for i, o := range s.Operations {
		c.count(fmt.Sprintf("operations[%d].card", i), o.Card, maxCards-1)
		c.count(fmt.Sprintf("operations[%d].addresses", i), o.Addresses, maxSmall)
		c.count(fmt.Sprintf("operations[%d].prefixes", i), o.Prefixes, maxSmall)
	}
	for i, n := range s.Subnets {
		c.text(fmt.Sprintf("subnets[%d].id", i), n.ID)
		c.text(fmt.Sprintf("subnets[%d].cidr", i), n.CIDR)
		c.known(fmt.Sprintf("subnets[%d].available", i), n.Available, maxSmall)
	}
	for i, e := range s.LastErrors {
		c.count(fmt.Sprintf("lastErrors[%d].count", i), e.Count, maxCounter)
	}
	calls, errs := 0, 0
	for i, e := range s.EC2Calls {
		c.count(fmt.Sprintf("ec2Calls[%d].calls", i), e.Calls, maxCounter)
		c.count(fmt.Sprintf("ec2Calls[%d].errors", i), e.Errors, maxCounter)
		if c.err != nil {
			return
		}
		calls, errs = calls+e.Calls, errs+e.Errors
	}
	c.count("the sum of ec2Calls[].calls", calls, maxCounter)
	c.count("the sum of ec2Calls[].errors", errs, maxCounter)
}

func (c *check) requests(name string, r *RequestCounts) {
	if r == nil {
		return
	}
	c.count(name+".total", r.Total, maxCounter)
	c.known(name+".failed", r.Failed, maxCounter)
	if !c.list(name+".causes", len(r.Causes), maxList) {
		return
	}
	for _, code := range slices.Sorted(maps.Keys(r.Causes)) {
		c.count(fmt.Sprintf("%s.causes[%.40q]", name, code), r.Causes[code], maxCounter)
	}
}
