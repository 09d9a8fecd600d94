package tables

import (
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// Unread is shown in the cells of a node that should have answered but could not be read.
const Unread = "?"

type column = query.Column[*store.Node]

// nodeTable lists the columns. cnictl nodes prints those that are neither Wide nor Named.
var nodeTable = [nodeColumns]nodeColumn{
	{column{Name: "node", Header: "NODE", Title: "name of the node", Least: 12}, func(n *store.Node) string { return n.Metadata.Name }},
	{column{Name: "type", Header: "TYPE", Title: "instance type", Drop: 3}, TypeText},
	{column{Name: "zone", Header: "ZONE", Title: "availability zone", Named: true, Drop: 10},
		object(func(o *document.NodeObject) string { return o.Zone })},
	{column{Name: "eni", Header: "ENI", Title: "ENIs attached, of the maximum", Right: true,
		CSV: []column{numeral("ENI", func(n *store.Node) *int { return n.ENIs }),
			numeral("ENI LIMIT", func(n *store.Node) *int { return n.ENILimit })},
		Number: maybe(func(n *store.Node) *int { return n.ENIs })}, known(enisText)},
	{column{Name: "ip", Header: "IP", Title: "addresses assigned to pods, of those held", Named: true,
		CSV: []column{numeral("IP ASSIGNED", pooledInt(func(n *store.Node) int { return n.Assigned })),
			numeral("IP HELD", pooledInt(func(n *store.Node) int { return n.Held }))},
		Right: true, Number: count(func(n *store.Node) int { return n.Assigned })},
		ofPool(func(n *store.Node) string {
			return show.Count(n.Assigned) + "/" + show.Count(n.Held)
		})},
	{column{Name: "ip%", Header: "IP%", Title: "addresses assigned to pods, in percent of those that pods can have: as many as the node can hold, at most max-pods",
		Named: true, Unit: "%", Right: true, Drop: 8, Number: percent}, known(percentText)},
	{column{Name: "assigned", Header: "ASSIGNED", Title: "addresses assigned to pods", Right: true,
		Number: count(func(n *store.Node) int { return n.Assigned })}, ofPool(func(n *store.Node) string { return show.Count(n.Assigned) })},
	{column{Name: "cooling", Header: "COOLING", Title: "addresses cooling down after their pod was deleted", Right: true, Drop: 5,
		Number: maybe(func(n *store.Node) *int { return n.Cooling })}, known(func(n *store.Node) string { return show.Int(n.Cooling) })},
	{column{Name: "free", Header: "FREE", Title: "addresses available to new pods", Right: true,
		Number: count(func(n *store.Node) int { return n.Free })}, ofPool(func(n *store.Node) string { return show.Count(n.Free) })},
	{column{Name: "limit", Header: "LIMIT", Title: "maximum number of addresses", Right: true, Drop: 4,
		Number: maybe(func(n *store.Node) *int { return n.Limit })}, known(func(n *store.Node) string { return show.Int(n.Limit) })},
	{column{Name: "warm", Header: "WARM", Title: "addresses available to new pods, same as the free column", Named: true, Right: true, Drop: 6,
		Number: count(func(n *store.Node) int { return n.Free })}, ofPool(func(n *store.Node) string { return show.Count(n.Free) })},
	{column{Name: "targets", Header: "TARGETS", Title: "warm targets in effect: addresses, minimum, prefixes or ENIs", Drop: 6,
		CSV: targetColumns}, known(func(n *store.Node) string { return WarmTargets(*n.Summary) })},
	{column{Name: "maxpods", Header: "MAXPODS", Title: "kubelet's max-pods, and whether there are enough addresses", Drop: 2,
		CSV:    []column{numeral("MAXPODS", (*store.Node).MaxPods), {Header: "MAXPODS VERDICT", Text: maxPodsVerdict}},
		Number: maybe((*store.Node).MaxPods)},
		maxPodsText},
	{column{Name: "branch", Header: "BRANCH", Title: "branch ENIs in use, of those the instance type supports", Right: true,
		CSV: branchColumns, Drop: 7, Number: maybe(branches)}, known(func(n *store.Node) string { return Branches(n.Summary.Trunk) })},
	{column{Name: "trunk", Header: "TRUNK/BR", Title: "trunk ENIs, and branch ENIs in use of those the instance type supports", Named: true,
		CSV: append([]column{numeral("TRUNKS", trunks)}, branchColumns...), Drop: 7, Number: maybe(branches)}, known(trunkText)},
	{column{Name: "trend", Header: "TREND 15m", Title: "addresses assigned to pods over 15 minutes, from 0 to what the node can hold; sorted by the change",
		Named: true, Unit: "CHANGE", Drop: 12, Number: trend}, known(trendText)},
	{column{Name: "mode", Header: "MODE", Title: "secondary IPs or prefixes", Wide: true}, known(modes)},
	{column{Name: "prefixes", Header: "PREFIXES", Title: "prefixes held", Wide: true, Right: true,
		Number: maybe(func(n *store.Node) *int { return n.Prefixes })}, known(func(n *store.Node) string { return show.Int(n.Prefixes) })},
	{column{Name: "waiting", Header: "WAITING", Title: "ADDs waiting for an address", Wide: true, Right: true,
		Number: summaryInt(func(s *introspect.Summary) *int { return s.WaitingADDs })},
		known(func(n *store.Node) string { return show.Int(n.Summary.WaitingADDs) })},
	{column{Name: "instance", Header: "INSTANCE", Title: "instance ID", Wide: true}, of(instanceOf)},
	{column{Name: "version", Header: "VERSION", Title: "version of the daemon, else its image tag", Wide: true},
		of(func(n *store.Node) string { return n.DaemonVersion() })},
	{column{Name: "up", Header: "UP", Title: "time since the daemon started", Wide: true, Right: true, Unit: "SECONDS",
		Number: age(startedAt)}, known(ageText(startedAt))},
	{column{Name: "source", Header: "SOURCE", Title: "where the numbers come from: summary (ours), v1 (upstream's documents; also source=upstream)",
		Wide: true, Also: owner}, known(func(n *store.Node) string { return n.Source })},
	{column{Name: "via", Header: "VIA", Title: "how the node was reached", Named: true},
		func(n *store.Node) string { return show.OrUnknown(n.Via) }},
	{column{Name: "age", Header: "AGE", Title: "of the Node object", Named: true, Right: true, Unit: "SECONDS", Drop: 11,
		Number: age(createdAt)}, ageText(createdAt)},
	{column{Name: "pods", Header: "PODS", Title: "addresses assigned to pods, of max-pods", Named: true, Right: true,
		CSV: []column{numeral("PODS", pooledInt(func(n *store.Node) int { return n.Assigned })),
			numeral("MAXPODS", (*store.Node).MaxPods)},
		Number: count(func(n *store.Node) int { return n.Assigned })},
		ofPool(func(n *store.Node) string { return show.Count(n.Assigned) + "/" + show.Int(n.MaxPods()) })},
	{column{Name: "adds", Header: "ADD/MIN", Title: "ADDs per minute", Named: true, Right: true,
		Number: rate(func(r *store.Rates) *float64 { return r.ADDs })}, rateText(func(r *store.Rates) *float64 { return r.ADDs })},
	{column{Name: "dels", Header: "DEL/MIN", Title: "DELs per minute", Named: true, Right: true,
		Number: rate(func(r *store.Rates) *float64 { return r.DELs })}, rateText(func(r *store.Rates) *float64 { return r.DELs })},
	{column{Name: "ec2", Header: "EC2/MIN", Title: "EC2 calls per minute", Named: true, Right: true,
		Number: rate(func(r *store.Rates) *float64 { return r.EC2 })}, rateText(func(r *store.Rates) *float64 { return r.EC2 })},
	{column{Name: "latency", Header: "LATENCY", Title: "of the last answer", Named: true, Right: true, Unit: "SECONDS", Number: latency},
		latencyText},
	{column{Name: "reading", Header: "READING", Title: "whether the node could be read: live, stale, unreachable, …", Named: true},
		func(n *store.Node) string { return show.OrUnknown(string(n.State)) }},
	{column{Name: "daemon", Header: "DAEMON", Title: "the aws-node pod", Named: true}, object(func(o *document.NodeObject) string {
		if o.Daemon == nil {
			return ""
		}
		return o.Daemon.Name
	})},
	{column{Name: "nodegroup", Header: "NODEGROUP", Title: "managed node group or node pool, by the labels of the Node", Named: true},
		object(nodeGroup)},
	{column{Name: "cause", Header: "CAUSE", Title: "the worst problem, or why the node could not be read, without counts and times",
		Named: true}, func(n *store.Node) string { return show.OrUnknown(causeOf(n)) }},
	{column{Name: "pool", Header: "POOL", Title: "addresses used, cooling and free, of as many as pods can have; in text, the percentage used",
		Named: true, Unit: "%", Number: percent}, known(percentText)},
	{column{Name: "subnets", Header: "SUBNETS", Title: "subnets that its ENIs are or can be created in", Named: true}, known(subnetsText)},
	{column{Name: "state", Header: "STATUS", Title: "the worst problem, or ok; sorts worst first", Least: 20, Rank: rank,
		Also: func(n *store.Node) string { return n.Code },
		CSV:  []column{{Name: "state", Header: "STATUS", Text: func(n *store.Node) string { return n.RawStatus() }}}},
		func(n *store.Node) string { return n.Status() }},
}

func nodeGroup(o *document.NodeObject) string {
	_, name := store.NodeGroup(o)
	return name
}

// causeOf is Status without what differs between nodes of the same cause; "" if all is well.
func causeOf(n *store.Node) string {
	if worst, found := n.Worst(); found {
		return worst.Name()
	}
	if n.Error != nil && n.State != document.StateLive && !fleet.Excused(n.NodeIPAM) {
		return fleet.ReadingWord(n.State) + ": " + fleet.ReasonText(n.Error.Reason)
	}
	return ""
}

// numeral is a CSV column: a number or nothing.
func numeral(header string, of func(*store.Node) *int) column {
	return column{Header: header, Text: func(n *store.Node) string { return show.Int(of(n)) }}
}

func pooledInt(of func(*store.Node) int) func(*store.Node) *int {
	return func(n *store.Node) *int {
		if !n.Pooled() {
			return nil
		}
		return new(of(n))
	}
}

// branchColumns are the CSV columns for the numbers in Branches.
var branchColumns = []column{
	numeral("BRANCH", branchInt(func(t *introspect.Trunk) *int { return t.BranchUsed })),
	numeral("BRANCH LIMIT", branchInt(func(t *introspect.Trunk) *int { return t.BranchLimit })),
}

func branchInt(of func(*introspect.Trunk) *int) func(*store.Node) *int {
	return func(n *store.Node) *int {
		if n.Summary == nil || Branches(n.Summary.Trunk) == show.Unknown {
			return nil
		}
		return of(n.Summary.Trunk)
	}
}

// trunks returns the number of trunk ENIs of a node.
func trunks(n *store.Node) *int {
	switch {
	case n.Summary == nil || Branches(n.Summary.Trunk) == show.Unknown:
		return nil
	case n.Summary.Trunk.ENIID == "":
		return new(0)
	}
	return new(1)
}

// known is a text that only the node itself can provide.
func known(text func(*store.Node) string) func(*store.Node) string {
	return func(n *store.Node) string {
		if n.Known {
			return text(n)
		}
		return unread(n)
	}
}

// unread is shown for what a node did not report: ? if it should have, - if it was not asked
// or has nothing to report.
func unread(n *store.Node) string {
	switch n.State {
	case document.StateAPIOnly, document.StateNoDaemon:
		if n.Error == nil || fleet.Excused(n.NodeIPAM) {
			return show.Unknown
		}
	}
	return Unread
}

// of is a text from the node or from Kubernetes.
func of(value func(*store.Node) string) func(*store.Node) string {
	return func(n *store.Node) string {
		switch v := value(n); {
		case v != "":
			return v
		case n.Known:
			return show.Unknown
		}
		return unread(n)
	}
}

// owner is the alternative text of the source column.
func owner(n *store.Node) string {
	if n.Known && n.Source == document.SourceV1 {
		return "upstream"
	}
	return ""
}

func object(value func(*document.NodeObject) string) func(*store.Node) string {
	return func(n *store.Node) string {
		if n.Object == nil {
			return show.Unknown
		}
		return show.OrUnknown(value(n.Object))
	}
}

// ofPool is a text about the pool.
func ofPool(text func(*store.Node) string) func(*store.Node) string {
	return known(func(n *store.Node) string {
		if !n.Pooled() {
			return show.Unknown
		}
		return text(n)
	})
}

type number = func(*store.Node) (float64, bool)

func count(value func(*store.Node) int) number {
	return func(n *store.Node) (float64, bool) {
		if !n.Pooled() {
			return 0, false
		}
		return float64(value(n)), true
	}
}

func maybe(value func(*store.Node) *int) number {
	return func(n *store.Node) (float64, bool) {
		v := value(n)
		if v == nil {
			return 0, false
		}
		return float64(*v), true
	}
}

func summaryInt(value func(*introspect.Summary) *int) number {
	return maybe(func(n *store.Node) *int {
		if n.Summary == nil {
			return nil
		}
		return value(n.Summary)
	})
}

// longestType is twice the length of the longest EC2 instance type.
const longestType = 40

// typeOf returns the instance type that the node's daemon reports. As that may be any text, it
// falls back to the one from Kubernetes if the report is implausible.
func typeOf(n *store.Node) string {
	reported := ""
	if n.Summary != nil {
		reported = n.Summary.InstanceType
	}
	sane := reported != "" && len(reported) <= longestType && show.Printable(reported) == reported
	if !sane && n.Object != nil && n.Object.InstanceType != "" {
		return n.Object.InstanceType
	}
	return reported
}

// TypeText returns the instance type as tables show it.
func TypeText(n *store.Node) string { return show.Clip(of(typeOf)(n), longestType) }

func instanceOf(n *store.Node) string {
	if n.Summary != nil && n.Summary.InstanceID != "" {
		return n.Summary.InstanceID
	}
	if n.Object != nil {
		return n.Object.InstanceID
	}
	return ""
}

func enisText(n *store.Node) string {
	if n.ENILimit == nil {
		return show.Int(n.ENIs)
	}
	return show.Int(n.ENIs) + "/" + strconv.Itoa(*n.ENILimit)
}

func percent(n *store.Node) (float64, bool) {
	most := n.Capacity()
	if most == nil || *most <= 0 {
		return 0, false
	}
	return float64(n.Assigned) * 100 / float64(*most), true
}

func percentText(n *store.Node) string {
	p, ok := percent(n)
	if !ok {
		return show.Unknown
	}
	return strconv.Itoa(int(p)) + "%"
}

// warmTargets returns the targets in effect, with the precedence of ipamd: addresses before
// prefixes before ENIs. The others are nil.
func warmTargets(s introspect.Summary) introspect.Targets {
	set := func(v *int) *int {
		if v == nil || *v <= 0 {
			return nil
		}
		return v
	}
	t := introspect.Targets{WarmIP: set(s.Targets.WarmIP), MinimumIP: set(s.Targets.MinimumIP)}
	prefixes := len(s.Cards) > 0 && s.Cards[0].Mode == introspect.ModePrefix
	switch {
	case t.WarmIP != nil || t.MinimumIP != nil:
	case prefixes:
		t.WarmPrefix = s.Targets.WarmPrefix
	default:
		t.WarmENI = s.Targets.WarmENI
	}
	return t
}

// targetParts are the targets with their names in tables and CSV.
var targetParts = []struct {
	word, header string
	of           func(introspect.Targets) *int
}{
	{"ip", "WARM IP", func(t introspect.Targets) *int { return t.WarmIP }},
	{"min", "MINIMUM IP", func(t introspect.Targets) *int { return t.MinimumIP }},
	{"prefix", "WARM PREFIX", func(t introspect.Targets) *int { return t.WarmPrefix }},
	{"eni", "WARM ENI", func(t introspect.Targets) *int { return t.WarmENI }},
}

// targetColumns are the CSV columns for the numbers in WarmTargets.
var targetColumns = func() (out []column) {
	for _, p := range targetParts {
		out = append(out, numeral(p.header, func(n *store.Node) *int {
			if !n.Known {
				return nil
			}
			return p.of(warmTargets(*n.Summary))
		}))
	}
	return out
}()

// WarmTargets names the targets in effect.
func WarmTargets(s introspect.Summary) string {
	act := warmTargets(s)
	var parts []string
	for _, p := range targetParts {
		if v := p.of(act); v != nil {
			parts = append(parts, p.word+" "+strconv.Itoa(*v))
		}
	}
	return show.OrUnknown(strings.Join(parts, " "))
}

func maxPodsText(n *store.Node) string {
	v := n.MaxPods()
	switch {
	case v == nil && n.Known:
		return show.Unknown
	case v == nil:
		return unread(n)
	}
	return strings.TrimSuffix(strconv.Itoa(*v)+" "+maxPodsVerdict(n), " ")
}

// maxPodsVerdict is ok, over or under; "" if unknown.
func maxPodsVerdict(n *store.Node) string {
	if n.Summary == nil || n.Summary.MaxPods == nil || n.Summary.MaxPods.Value == nil {
		return ""
	}
	return n.Summary.MaxPods.Verdict
}

func branches(n *store.Node) *int {
	if n.Summary == nil || n.Summary.Trunk == nil {
		return nil
	}
	return n.Summary.Trunk.BranchUsed
}

// Branches shows the branch ENIs in use and their limit, for a node that has or may get a
// trunk.
func Branches(t *introspect.Trunk) string {
	if t == nil || t.ENIID == "" && (!t.Enabled || t.Supported != nil && !*t.Supported) {
		return show.Unknown
	}
	return show.Int(t.BranchUsed) + "/" + show.Int(t.BranchLimit)
}

func trunkText(n *store.Node) string {
	text := Branches(n.Summary.Trunk)
	switch {
	case text == show.Unknown:
		return text
	case n.Summary.Trunk.ENIID == "":
		return "0 " + text
	}
	return "1 " + text
}

// trendCells is the width of the trend column: one cell per 100 seconds.
const trendCells = 9

func trendText(n *store.Node) string {
	text := strings.TrimSpace(show.Spark(n.Trend(trendCells), trendCells, 1, false))
	return show.OrUnknown(text)
}

// trend is the growth of the number of addresses that pods have.
func trend(n *store.Node) (float64, bool) {
	first, last := -1, -1
	for i, p := range n.History {
		if p.Gap() {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first == last {
		return 0, false
	}
	return float64(n.History[last].Assigned - n.History[first].Assigned), true
}

// modes names the modes of the cards, joined by + if they differ.
func modes(n *store.Node) string {
	var modes []string
	for _, c := range n.Summary.Cards {
		if len(modes) == 0 || modes[len(modes)-1] != c.Mode {
			modes = append(modes, c.Mode)
		}
	}
	return show.OrUnknown(strings.Join(modes, "+"))
}

func startedAt(n *store.Node) *time.Time {
	if n.Summary == nil {
		return nil
	}
	return n.Summary.StartedAt
}

func createdAt(n *store.Node) *time.Time {
	if n.Object == nil {
		return nil
	}
	return n.Object.CreatedAt
}

// age is relative to the time of the sample, so that it is constant between samples.
func age(of func(*store.Node) *time.Time) number {
	return func(n *store.Node) (float64, bool) {
		at := of(n)
		if at == nil || seen(n).IsZero() || show.Since(at, seen(n)) == show.Unknown {
			return 0, false
		}
		return seen(n).Sub(*at).Seconds(), true
	}
}

func ageText(of func(*store.Node) *time.Time) func(*store.Node) string {
	return func(n *store.Node) string {
		if seen(n).IsZero() {
			return show.Unknown
		}
		return show.Since(of(n), seen(n))
	}
}

// seen is the time that a node's ages are relative to: that of its sample, else of its last
// change.
func seen(n *store.Node) time.Time {
	if n.SampledAt != nil {
		return *n.SampledAt
	}
	return n.Changed
}

func rate(value func(*store.Rates) *float64) number {
	return func(n *store.Node) (float64, bool) {
		if n.Rates == nil || value(n.Rates) == nil {
			return 0, false
		}
		return *value(n.Rates), true
	}
}

func rateText(value func(*store.Rates) *float64) func(*store.Node) string {
	return func(n *store.Node) string {
		v, ok := rate(value)(n)
		if !ok {
			return show.Unknown
		}
		return show.Rate(v)
	}
}

func latency(n *store.Node) (float64, bool) {
	if n.LatencySeconds == nil {
		return 0, false
	}
	return *n.LatencySeconds, true
}

func latencyText(n *store.Node) string {
	if n.LatencySeconds == nil {
		return show.Unknown
	}
	return strconv.Itoa(int(*n.LatencySeconds*1000+0.5)) + "ms"
}

func subnetsText(n *store.Node) string { return show.OrUnknown(strings.Join(n.SubnetIDs(), ",")) }

// rank orders nodes by severity, worst first; those without a problem come last.
func rank(n *store.Node) int {
	if len(n.Problems) == 0 {
		return document.SeverityInfo.Rank() + 1
	}
	return n.Severity.Rank()
}
