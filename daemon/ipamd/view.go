package ipamd

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/budget"
	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// View asks the owner, which answers between two messages, so the result is consistent and
// current.
func (d *daemon) View() introspectserver.View { return d.view(d.picture()) }

func (d *daemon) picture() (keeper.State, history) {
	type picture struct {
		state keeper.State
		past  history
	}
	p, ok := ask(d.owner, func(k *keeper.Keeper, now time.Time) picture {
		return picture{k.State(now), d.recorder.history.clone()}
	})
	if !ok {
		// The process is ending and the state is no longer available.
		p.state.Now, p.past = time.Now(), newHistory()
	}
	return p.state, p.past
}

// pool is the input of /v1/plan.
func (d *daemon) pool(context.Context) (introspectserver.Pool, error) {
	p, ok := ask(d.owner, func(k *keeper.Keeper, now time.Time) introspectserver.Pool {
		snapshot, policy := k.Pool(now)
		return introspectserver.Pool{Snapshot: snapshot, Policy: policy, Now: now}
	})
	if !ok {
		return p, errEnded
	}
	return p, nil
}

// poolGauges returns the pool's metrics for a scrape.
func (d *daemon) poolGauges() metrics.PoolGauges {
	st, past := d.picture()
	v := d.view(st, past)
	g := metrics.FromSnapshot(v.Book, v.Now, v.Cooldown)
	for _, c := range v.Summary.Cards {
		usable := max(0, *c.ENILimit-*c.OtherENIs)
		g.MaxENIs += usable
		if !d.node.config.IPv6 { // upstream's figure, which makes no exceptions
			perSlot := 1
			if c.Mode == introspect.ModePrefix {
				perSlot = limits.PrefixSize
			}
			g.MaxIPs += usable * *c.SlotsPerENI * perSlot
		}
	}
	if m := v.Summary.MaxPods; m != nil && m.Value != nil {
		g.MaxPods = *m.Value
	}
	if m := v.Summary.MaxPods; m != nil && m.TotalCapacity != nil && *m.TotalCapacity != introspect.MaxPodsUnlimited {
		g.PodCapacity = *m.TotalCapacity
	}
	g.Reconciled, g.Branches = st.Reconciled, d.branchGauge(v.Summary.Trunk)
	for _, s := range v.Summary.Subnets {
		g.Subnets = append(g.Subnets, metrics.SubnetGauge{Subnet: s.ID, Free: *s.Available})
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

// branchGauge is nil on a node that cannot have a trunk.
func (d *daemon) branchGauge(t *introspect.Trunk) *metrics.BranchGauge {
	if !t.Enabled || t.Supported == nil || !*t.Supported {
		return nil
	}
	g := &metrics.BranchGauge{Trunk: t.ENIID != "", Used: -1, Max: *t.BranchLimit}
	if t.BranchUsed != nil {
		g.Used = *t.BranchUsed
	}
	return g
}

func (d *daemon) view(st keeper.State, past history) introspectserver.View {
	c := d.node.config
	return introspectserver.View{
		Now: st.Now, Book: st.Book, Cooldown: c.Cooldown,
		Summary: d.summary(st, past), Config: configRows(*d.node.targets.settings.Load()),
		ENIConfigName: d.eniConfigName(), ENIConfigKnown: st.NodeKnown,
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

// eniConfigName is the ENIConfig that the Node selects, whether or not custom networking is
// on: upstream returns it either way.
func (d *daemon) eniConfigName() string {
	c := d.node.config
	var node cluster.Node
	if d.api != nil {
		if known := d.api.node.Load(); known != nil {
			node = *known
		}
	}
	return cluster.ENIConfigName(node, c.ENIConfigAnnotation, c.ENIConfigLabel)
}

func configRows(settings []config.Setting) []introspect.ConfigRow {
	rows := make([]introspect.ConfigRow, len(settings))
	for i, s := range settings {
		rows[i] = introspect.ConfigRow{
			Name: s.Name, Effective: s.Effective, Source: string(s.Source), Problem: strings.Join(s.Problems, "; "),
			Support: string(s.Support), Label: s.Label,
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
		return nil // null, as upstream prints an unset list
	}
	return cidrTexts(ps)
}

// snatNumber is upstream's number for a mode of port randomization.
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

func (d *daemon) summary(st keeper.State, past history) introspect.Summary {
	n, p := d.node, st.Policy
	settings := *n.targets.settings.Load()
	problems := config.WithProblems(settings)
	started := n.started.UTC()
	family := "ipv4"
	if n.config.IPv6 {
		family = "ipv6"
	}
	trunk := n.trunkView(st.Book)
	d.countBranches(trunk)
	s := introspect.Summary{
		Version: n.version, Node: n.config.NodeName, InstanceID: n.identity.InstanceID, InstanceType: n.identity.InstanceType,
		IPFamily: family, StartedAt: &started,
		CustomNetworking: &n.config.CustomNetworking, Terminating: &st.Terminating,
		Targets: introspect.Targets{
			WarmENI: &p.WarmENI, WarmIP: &p.WarmIP, MinimumIP: &p.MinIP, WarmPrefix: &p.WarmPrefix, MaxENI: &p.MaxENI,
			FromLabels: config.FromLabels(settings),
		},
		MaxPods: n.maxPodsView(st, trunk.BranchUsed), Trunk: trunk,
		WaitingADDs: &st.Waiting, Operations: operationViews(st), Backoffs: backoffViews(st), Subnets: subnetViews(st, d.recorder.subnets),
		LastErrors: past.errors, EC2Calls: d.calls.list(d.rates()),
		ADDs: &past.adds, DELs: &past.dels, ConfigProblems: &problems,
	}
	if st.NodeKnown {
		s.Cordoned = &st.Unschedulable
	}
	if st.Waiting > 0 {
		oldest := st.WaitingSince.UTC()
		s.WaitingSince = &oldest
	}
	for card, most := range st.Limits.ENIsByCard {
		s.Cards = append(s.Cards, n.cardView(st, card, most))
	}
	return s
}

// rates are the current limits on EC2 request rates; nil in IMDS-only mode.
func (d *daemon) rates() []budget.State {
	if d.ec2 == nil {
		return nil
	}
	return d.ec2.Budget()
}

func (n *node) cardView(st keeper.State, card, most int) introspect.CardSummary {
	mode := introspect.ModeSecondaryIP
	if n.prefixes {
		mode = introspect.ModePrefix
	}
	if st.Policy.MaxENI > 0 {
		most = min(most, st.Policy.MaxENI)
	}
	other := st.OtherENIs[card]
	pool := n.pool(st, card)
	return introspect.CardSummary{
		Card: card, Mode: mode, OtherENIs: &other, ENILimit: &most, SlotsPerENI: &pool.Slots, AddressLimit: &pool.Addresses,
		StatedENILimit: statedView(st.Stated.Card(card)), StatedSlots: statedView(st.Stated.Slots),
	}
}

// pool is the most that a card's pool can hold.
func (n *node) pool(st keeper.State, card int) limits.Pool {
	all := n.maxPodsInput(st)
	in := limits.PoolInput{
		MaxENI: all.MaxENI, StatedENIs: st.Stated.Card(card).Most, StatedSlots: all.StatedSlots, Prefixes: n.prefixes, IPv6: all.IPv6,
		CustomNetworking: all.CustomNetworking, Trunk: st.Policy.ReserveTrunkSlot || all.TrunkAttached, UnmanagedENIs: st.OtherENIs[card],
	}
	for _, e := range st.Book.ENIs {
		if e.Card == card && e.Excluded {
			in.ExcludedENIs++
			in.PrimaryExcluded = in.PrimaryExcluded || e.Primary
		}
	}
	return n.instance.CardPool(card, in)
}

func statedView(s warmpool.Stated) *introspect.StatedLimit {
	if !s.There() {
		return nil
	}
	return &introspect.StatedLimit{Limit: s.Most, OfType: s.OfType, Since: new(s.Since.UTC()), RetryAt: new(s.Retry.UTC())}
}

func (n *node) trunkView(book ipam.Snapshot) *introspect.Trunk {
	t := &introspect.Trunk{Enabled: n.config.PodENI}
	if i := n.instance; i.TrunkingCompatible != limits.Unknown {
		supported := i.TrunkingCompatible == limits.Yes
		branch := i.BranchENIs
		t.Supported, t.BranchLimit = &supported, &branch
	}
	for _, e := range book.ENIs {
		if e.Trunk {
			t.ENIID = string(e.ID)
		}
	}
	return t
}

// branchPods reports whether pods can have branch ENIs; the API server knows them.
func (d *daemon) branchPods() bool { return d.node.config.PodENI && d.api != nil }

// countBranches adds the node's pods that have a branch ENI, and those that wait for one, as far as the
// API server shows them.
func (d *daemon) countBranches(t *introspect.Trunk) {
	if !d.branchPods() {
		return
	}
	used, waiting := 0, 0
	var since time.Time
	_, known := d.api.ExpectedPods(func(p cluster.Pod) bool {
		switch {
		case p.OnBranch():
			used++
		case p.AwaitsBranch():
			if waiting++; since.IsZero() || !p.CreatedAt.IsZero() && p.CreatedAt.Before(since) {
				since = p.CreatedAt
			}
		}
		return false
	})
	if !known {
		return
	}
	t.BranchUsed, t.BranchWaiting = &used, &waiting
	if !since.IsZero() {
		t.WaitingSince = &since
	}
}

func (n *node) maxPodsView(st keeper.State, branchPods *int) *introspect.MaxPods {
	in := n.maxPodsInput(st)
	in.BranchPods = branchPods
	var value *int
	if in.MaxPods > 0 {
		value = &in.MaxPods
	}
	return introspect.MaxPodsOf(value, st.MaxPodsSource, maxpods.Compute(in))
}

func (n *node) maxPodsInput(st keeper.State) maxpods.Input {
	in := maxpods.Input{
		InstanceType: n.identity.InstanceType, Instance: &n.instance, MaxPods: st.Policy.MaxPods,
		MaxENI: st.Policy.MaxENI, PrefixDelegation: n.prefixes,
		StatedENIs: st.Stated.Card(0).Most, StatedSlots: st.Stated.Slots.Most,
		PodENI: n.config.PodENI, NoTrunkSlot: !st.Policy.ReserveTrunkSlot, MultiNIC: n.config.MultiNIC,
		CustomNetworking: st.Policy.CustomNetworking, IPv6: n.config.IPv6,
	}
	if len(st.OtherENIs) > 0 {
		in.UnmanagedENIs = st.OtherENIs[0]
	}
	for _, e := range st.Book.ENIs {
		if e.Card != 0 {
			continue
		}
		in.TrunkAttached = in.TrunkAttached || e.Trunk
		if e.Excluded {
			in.ExcludedENIs++
			in.PrimaryExcluded = in.PrimaryExcluded || e.Primary
		}
		if e.Excluded || e.Trunk || e.Primary && in.CustomNetworking {
			continue // its slots are not for pods anyway
		}
		for _, c := range e.CIDRs {
			if c.IsPrefix() != n.prefixes {
				in.LeftoverSlots++
			}
		}
	}
	return in
}

func operationViews(st keeper.State) []introspect.Operation {
	out := make([]introspect.Operation, 0, len(st.Operations))
	for _, op := range st.Operations {
		started := op.Started.UTC()
		out = append(out, introspect.Operation{
			Kind: keeper.ActionName(op.Kind), ENIID: string(op.ENI), Card: op.Card,
			Addresses: op.IPs, Prefixes: op.Prefixes, Reason: string(op.Reason), StartedAt: &started,
		})
	}
	return out
}

func backoffViews(st keeper.State) []introspect.Backoff {
	out := make([]introspect.Backoff, 0, len(st.Backoffs))
	for _, b := range st.Backoffs {
		out = append(out, introspect.Backoff{Scope: b.Scope, ID: b.ID, Until: b.Until.UTC(), Cause: string(b.Cause)})
	}
	return out
}

func subnetViews(st keeper.State, past *subnetHistory) []introspect.Subnet {
	if st.SubnetsRead.IsZero() {
		return nil
	}
	out := []introspect.Subnet{}
	asOf := st.SubnetsRead.UTC()
	for _, s := range st.Subnets {
		view := introspect.Subnet{ID: s.ID, Available: &s.AvailableIPs, AsOf: &asOf, HistorySince: past.since(s.ID)}
		if s.AvailableIPs == resync.Unknown {
			view.Available, view.AsOf = nil, nil
		}
		if s.CIDR.IsValid() {
			view.CIDR = s.CIDR.String()
		}
		out = append(out, view)
	}
	return out
}

// cidrTexts prints prefixes.
func cidrTexts(ps []netip.Prefix) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}
