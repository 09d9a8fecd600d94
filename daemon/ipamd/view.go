package ipamd

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/warmpool"
)

// viewRequest asks the owner for a picture of its state.
type viewRequest struct{ reply chan introspectserver.View }

func (r viewRequest) handle(o *owner, now time.Time) { r.reply <- o.view(now) }

// View asks the owner, which answers between two messages: what it returns is
// consistent and current.
func (d *daemon) View() introspectserver.View {
	r := viewRequest{reply: make(chan introspectserver.View, 1)}
	d.owner.deliver(r)
	v, ok := answered(d.owner, r.reply)
	if !ok {
		// The process is ending: nothing is known any more.
		v.Now = time.Now()
	}
	return v
}

// poolGauges is what a scrape of the metrics shows of the pool.
func (d *daemon) poolGauges() metrics.PoolGauges {
	v := d.View()
	g := metrics.FromSnapshot(v.Book, v.Now, v.Cooldown)
	for _, c := range v.Summary.Cards {
		usable := max(0, *c.ENILimit-*c.OtherENIs)
		g.MaxENIs += usable
		g.MaxIPs += *c.AddressLimit
	}
	for _, b := range v.Summary.Backoffs {
		target := b.ID
		if target == "" {
			target = b.Scope
		}
		g.Backoffs = append(g.Backoffs, metrics.BackoffGauge{Target: target, Cause: b.Cause, Left: b.Until.Sub(v.Now)})
	}
	return g
}

func (o *owner) view(now time.Time) introspectserver.View {
	c := o.node.config
	return introspectserver.View{
		Now: now, Book: o.book.Snapshot(), Cooldown: o.policy.Cooldown,
		Summary: o.summary(now), Config: configRows(o.node.settings),
		ENIConfigName: "default", ENIConfigKnown: o.nodeKnown,
		NetworkEnv: introspect.NetworkEnv{
			ExternalServiceCIDRs: prefixTexts(c.ExternalServiceCIDRs), NodePortSupport: c.NodePortSupport, MTU: c.ENIMTU,
			Connmark: c.Connmark, ExcludeSNATCIDRs: prefixTexts(c.ExcludeSNATCIDRs), ExternalSNAT: c.ExternalSNAT,
			RandomizeSNAT: snatNumber(c.RandomizeSNAT), VethPrefix: c.VethPrefix,
		},
		IPAMEnv: introspect.IPAMEnv{
			ManageUnschedulable: c.ManageUnschedulable, SubnetDiscovery: c.SubnetDiscovery,
			CustomNetworking: c.CustomNetworking, WarmENITarget: c.WarmENI, WarmIPTarget: c.WarmIP,
		},
	}
}

func configRows(settings []config.Setting) []introspect.ConfigRow {
	rows := make([]introspect.ConfigRow, len(settings))
	for i, s := range settings {
		rows[i] = introspect.ConfigRow{
			Name: s.Name, Effective: s.Effective, Source: string(s.Source), Problem: strings.Join(s.Problems, "; "),
			Support: string(s.Support),
		}
		if s.Set {
			declared := s.Declared
			rows[i].Declared = &declared
		}
	}
	return rows
}

func prefixTexts(ps []netip.Prefix) []string {
	if len(ps) == 0 {
		return nil // null, as the original prints an unset list
	}
	return cidrTexts(ps)
}

// snatNumber is the original's number of a port randomisation.
func snatNumber(mode config.SNATPorts) int {
	switch mode {
	case config.SNATPortsNone:
		return 0
	case config.SNATPortsHash:
		return 1
	default:
		return 2
	}
}

func (o *owner) summary(now time.Time) introspect.Summary {
	n, p := o.node, o.policy
	started := n.started.UTC()
	waiting, problems := len(o.waiting), n.problems
	off := false
	s := introspect.Summary{
		Version: n.version, Node: n.config.NodeName, InstanceID: n.identity.InstanceID, InstanceType: n.identity.InstanceType,
		IPFamily: "ipv4", StartedAt: &started,
		CustomNetworking: &off, Terminating: &o.terminating,
		Targets: introspect.Targets{
			WarmENI: &p.WarmENI, WarmIP: &p.WarmIP, MinimumIP: &p.MinIP, WarmPrefix: &p.WarmPrefix, MaxENI: &p.MaxENI,
		},
		MaxPods: o.maxPodsView(), Trunk: o.trunkView(),
		WaitingADDs: &waiting, Operations: o.operationViews(), Backoffs: o.backoffViews(now), Subnets: o.subnetViews(),
		LastErrors: slices.Clone(o.history.errors), EC2Calls: o.calls.list(),
		ADDs: cloneCounts(o.history.adds), DELs: cloneCounts(o.history.dels), ConfigProblems: &problems,
	}
	if o.nodeKnown {
		cordoned := o.unschedulable
		s.Cordoned = &cordoned
	}
	terminating := o.terminating
	s.Terminating = &terminating
	if waiting > 0 {
		oldest := o.waiting[0].arrived.UTC()
		s.WaitingSince = &oldest
	}
	for card, most := range n.limits.ENIsByCard {
		s.Cards = append(s.Cards, o.cardView(card, most))
	}
	return s
}

func (o *owner) cardView(card, most int) introspect.CardSummary {
	slots := o.node.limits.IPv4PerENI - 1
	perSlot, mode := 1, introspect.ModeSecondaryIP
	if o.node.prefixes {
		perSlot, mode = 16, introspect.ModePrefix
	}
	if o.policy.MaxENI > 0 {
		most = min(most, o.policy.MaxENI)
	}
	var other int
	if card < len(o.node.otherENIs) {
		other = o.node.otherENIs[card]
	}
	addresses := max(0, most-other) * slots * perSlot
	return introspect.CardSummary{
		Card: card, Mode: mode, OtherENIs: &other, ENILimit: &most, SlotsPerENI: &slots, AddressLimit: &addresses,
	}
}

func (o *owner) trunkView() *introspect.Trunk {
	t := &introspect.Trunk{Enabled: o.node.config.PodENI}
	if i := o.node.instance; i.TrunkingCompatible != limits.Unknown {
		supported := i.TrunkingCompatible == limits.Yes
		branch := i.BranchENIs
		t.Supported, t.BranchLimit = &supported, &branch
	}
	for _, e := range o.book.Snapshot().ENIs {
		if e.Trunk {
			t.ENIID = string(e.ID)
		}
	}
	return t
}

func (o *owner) maxPodsView() *introspect.MaxPods {
	value := o.policy.MaxPods
	result := maxpods.Compute(o.maxPodsInput())
	out := &introspect.MaxPods{
		Value: &value, Source: o.maxPodsSource, Verdict: verdict(result.Verdict),
		IPCapacity: &result.IPCapacity, TotalCapacity: &result.TotalCapacity, Recommended: &result.Recommended,
	}
	for _, t := range result.Terms() {
		out.Terms = append(out.Terms, introspect.MaxPodsTerm{Name: t.Name, Value: t.Value})
	}
	return out
}

func verdict(v maxpods.Verdict) string {
	switch v {
	case maxpods.OK:
		return introspect.MaxPodsOK
	case maxpods.Over:
		return introspect.MaxPodsOver
	case maxpods.Under:
		return introspect.MaxPodsUnder
	default:
		return introspect.MaxPodsUnknown
	}
}

func (o *owner) maxPodsInput() maxpods.Input {
	in := maxpods.Input{
		InstanceType: o.node.identity.InstanceType, Instance: &o.node.instance, MaxPods: o.policy.MaxPods,
		MaxENI: o.policy.MaxENI, PrefixDelegation: o.node.prefixes,
		PodENI: o.node.config.PodENI, MultiNIC: o.node.config.MultiNIC, UnmanagedENIs: o.node.otherENIs[0],
	}
	for _, e := range o.book.Snapshot().ENIs {
		if e.Card != 0 {
			continue
		}
		in.TrunkAttached = in.TrunkAttached || e.Trunk
		if e.Excluded {
			in.ExcludedENIs++
			in.PrimaryExcluded = in.PrimaryExcluded || e.Primary
		}
		for _, c := range e.CIDRs {
			if c.IsPrefix() != o.node.prefixes {
				in.LeftoverSlots++
			}
		}
	}
	return in
}

func (o *owner) operationViews() []introspect.Operation {
	out := make([]introspect.Operation, 0, len(o.ops))
	for _, id := range slices.Sorted(maps.Keys(o.ops)) {
		op := o.ops[id]
		started := op.started.UTC()
		out = append(out, introspect.Operation{
			Kind: pendingName(op.pending.Kind), ENIID: string(op.pending.ENI), Card: op.pending.Card,
			Addresses: op.pending.IPs, Prefixes: op.pending.Prefixes, Reason: string(op.reason), StartedAt: &started,
		})
	}
	return out
}

func (o *owner) backoffViews(now time.Time) []introspect.Backoff {
	out := []introspect.Backoff{}
	add := func(scope, id string, c clock) {
		if c.until.After(now) {
			out = append(out, introspect.Backoff{Scope: scope, ID: id, Until: c.until.UTC(), Cause: string(c.cause)})
		}
	}
	add("attach", "", o.backoff.attach)
	add("release", "", o.backoff.release)
	for _, id := range slices.Sorted(maps.Keys(o.backoff.eni)) {
		add("eni", string(id), *o.backoff.eni[id])
	}
	for _, id := range slices.Sorted(maps.Keys(o.backoff.subnet)) {
		add("subnet", id, *o.backoff.subnet[id])
	}
	for _, id := range slices.Sorted(maps.Keys(o.backoff.subnetPrefixes)) {
		add("subnet-prefix", id, *o.backoff.subnetPrefixes[id])
	}
	return out
}

func (o *owner) subnetViews() []introspect.Subnet {
	if !o.subnets.known() {
		return nil
	}
	out := []introspect.Subnet{}
	asOf := o.subnets.read.UTC()
	for _, s := range o.node.subnetPolicy.Candidates(o.subnets.views()) {
		available := s.AvailableIPs
		out = append(out, introspect.Subnet{ID: s.ID, CIDR: o.subnets.cidr(s.ID).String(), Available: &available, AsOf: &asOf})
	}
	return out
}

func cloneCounts(c introspect.RequestCounts) *introspect.RequestCounts {
	c.Causes = maps.Clone(c.Causes)
	return &c
}

// pendingName names a kind of operation for logs, metrics and introspection.
func pendingName(k warmpool.PendingKind) string {
	switch k {
	case warmpool.PendingAttach:
		return "attach"
	case warmpool.PendingAssign:
		return "assign"
	case warmpool.PendingRelease:
		return "release"
	default:
		return "detach"
	}
}
