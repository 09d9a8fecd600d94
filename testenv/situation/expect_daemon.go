package situation

import (
	"net/netip"
	"strconv"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/doctor/evidence"
)

func (p *population) expectDaemon(r *evidence.Reading) {
	r.ENIs = evidence.Read(p.datastore())
	r.Counters = evidence.Read(p.counters())
	c := p.settings()
	r.Env = evidence.Read(evidence.Env{
		IPAMD: introspect.IPAMEnv{
			WarmENITarget: c.WarmENI, WarmIPTarget: c.WarmIP, CustomNetworking: c.CustomNetworking,
			ManageUnschedulable: c.ManageUnschedulable, SubnetDiscovery: c.SubnetDiscovery,
		},
		NetworkUtils: introspect.NetworkEnv{
			ExternalSNAT: c.ExternalSNAT, ExcludeSNATCIDRs: texts(c.ExcludeSNATCIDRs), ExternalServiceCIDRs: texts(c.ExternalServiceCIDRs),
			RandomizeSNAT: randomSNAT(c.RandomizeSNAT), NodePortSupport: c.NodePortSupport, MTU: c.ENIMTU, VethPrefix: c.VethPrefix, Connmark: c.Connmark,
		},
	})
	name := p.eniConfigName()
	r.ENIConfig = evidence.Read(&name)
	r.Metrics = evidence.Read(p.metrics())
	r.Checkpoint = evidence.Read(p.checkpoint())
	p.expectDocuments(r, c)
}

// datastore returns the managed interfaces with all addresses.
func (p *population) datastore() []evidence.ENI {
	out := []evidence.ENI{}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		if !e.Managed {
			continue
		}
		table := netnames.RouteTable(e.Card, e.device())
		eni := evidence.ENI{
			ID: e.ID, Card: e.Card, Device: e.device(), Primary: *e.Primary, Trunk: e.Trunk, EFA: e.EFA, Excluded: e.Excluded,
			Subnet: e.Subnet, RouteTable: &table, IPs: []evidence.Address{}, Prefixes: []evidence.Prefix{},
		}
		for _, a := range p.ips[e.ID] {
			entry := evidence.Address{Address: a}
			if r, ok := p.record(a); ok {
				entry = r.entry()
			}
			eni.IPs = append(eni.IPs, entry)
		}
		for _, c := range p.cidrs[e.ID] {
			prefix := evidence.Prefix{CIDR: c, IPs: []evidence.Address{}}
			for _, r := range p.records {
				if c.Contains(r.address) {
					prefix.IPs = append(prefix.IPs, r.entry())
				}
			}
			eni.Prefixes = append(eni.Prefixes, prefix)
		}
		out = append(out, eni)
	}
	return out
}

func (p *population) record(a netip.Addr) (record, bool) {
	for _, r := range p.records {
		if r.address == a {
			return r, true
		}
	}
	return record{}, false
}

// entry returns the record as the datastore shows it.
func (r record) entry() evidence.Address {
	a := evidence.Address{Address: r.address, AssignedAt: r.assignedAt, UnassignedAt: r.released}
	if r.pod != "" {
		a.Pod = &r.pod
	}
	return a
}

// counters counts like upstream: both modes, including excluded interfaces.
func (p *population) counters() map[string]evidence.Counters {
	out := map[string]evidence.Counters{}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		if !e.Managed {
			continue
		}
		card := strconv.Itoa(e.Card)
		c := out[card]
		c.TotalIPs += len(p.ips[e.ID]) + p.prefixSize()*len(p.cidrs[e.ID])
		for _, r := range p.records {
			if r.eni == e && r.pod != "" {
				c.AssignedIPs++
			}
		}
		out[card] = c
	}
	return out
}

// prefixSize is the number of addresses that a prefix counts as.
func (p *population) prefixSize() int {
	if p.IPFamily == "ipv6" {
		return 1 << 48
	}
	return 16
}

func (p *population) metrics() evidence.Metrics {
	total, assigned, enis, prefixes := 0, 0, 0, 0
	for _, c := range p.counters() {
		total, assigned = total+c.TotalIPs, assigned+c.AssignedIPs
	}
	for i := range p.ENIs {
		if e := &p.ENIs[i]; e.Managed {
			enis, prefixes = enis+1, prefixes+len(p.cidrs[e.ID])
		}
	}
	samples := map[string]float64{
		"awscni_total_ip_addresses": float64(total), "awscni_assigned_ip_addresses": float64(assigned),
		"awscni_eni_allocated": float64(enis), "awscni_total_ipv4_prefixes": float64(prefixes),
		`awscni_build_info{goversion="go1.26",version="` + p.Version + `"}`: 1,
	}
	if t, ok := p.instance(); ok {
		most := t.MaxENIs
		if c := p.settings(); c.MaxENI > 0 {
			most = min(most, c.MaxENI)
		}
		for i := range p.ENIs {
			if !p.ENIs[i].Managed {
				most--
			}
		}
		samples["awscni_eni_max"], samples["awscni_ip_max"] = float64(most), float64(most*(t.IPv4PerENI-1))
	}
	if !p.release.Before(evidence.Version{1, 23}) && p.IPFamily == "ipv4" {
		samples[`awscni_connmark_backend{backend="nftables"}`] = 1
	}
	return evidence.Metrics{ProcessStart: p.UpSince, Samples: samples}
}

func (p *population) checkpoint() evidence.Checkpoint {
	c := evidence.Checkpoint{Path: netnames.CheckpointFile, Version: netnames.CheckpointVersion, ModifiedAt: p.UpSince, Temporary: ref(0), Allocations: []evidence.Allocation{}}
	for _, r := range p.records {
		if r.pod == "" {
			continue
		}
		c.Allocations = append(c.Allocations, evidence.Allocation{Pod: r.pod, Address: r.address, At: r.assignedAt})
		if r.assignedAt.After(c.ModifiedAt) {
			c.ModifiedAt = r.assignedAt
		}
	}
	c.Bytes = ref(60 + 250*len(c.Allocations))
	return c
}

// expectDocuments sets the documents of our daemon; upstream's has none.
func (p *population) expectDocuments(r *evidence.Reading, c config.Config) {
	if p.Daemon != "ours" {
		for id, s := range r.Sources() {
			switch id {
			case "intro.summary", "intro.config", "intro.plan", "intro.failures", "intro.events", "intro.pod":
				s.Lack(evidence.MissingAbsent)
			}
		}
		return
	}
	targets := introspect.Targets{WarmENI: &c.WarmENI, WarmIP: &c.WarmIP, MinimumIP: &c.MinIP, WarmPrefix: &c.WarmPrefix, MaxENI: &c.MaxENI}
	r.Summary = evidence.Read(p.summary(c, targets))
	settings := introspect.NodeConfig{APIVersion: introspect.APIVersion, Kind: "NodeConfig", Items: []introspect.ConfigRow{}}
	for _, s := range c.Describe(nil) {
		settings.Items = append(settings.Items, introspect.ConfigRow{Name: s.Name, Declared: declared(s), Effective: s.Effective, Source: string(s.Source), Support: string(s.Support)})
	}
	r.Config = evidence.Read(settings)
	r.Plan = evidence.Read(introspect.NodePlan{APIVersion: introspect.APIVersion, Kind: "NodePlan", Targets: targets, MaxPods: *p.MaxPods})
	r.Failures = evidence.Read(introspect.NodeFailures{APIVersion: introspect.APIVersion, Kind: "NodeFailures"})
	r.Journal = evidence.Read(introspect.NodeEvents{APIVersion: introspect.APIVersion, Kind: "NodeEvents", Epoch: "1"})
	r.PodViews = evidence.Read([]introspect.NodePod{})
}

func (p *population) summary(c config.Config, targets introspect.Targets) introspect.Summary {
	none, off := 0, false
	s := introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: p.Version, Node: p.Node, InstanceID: p.Instance,
		InstanceType: p.InstanceType, IPFamily: p.IPFamily, StartedAt: &p.UpSince, CustomNetworking: &c.CustomNetworking, Cordoned: &off, Terminating: &off,
		Targets: targets, CooldownSeconds: ref(c.Cooldown.Seconds()), WaitingADDs: &none, Unplaced: &none, ConfigProblems: &none,
		MaxPods: &introspect.MaxPods{Value: p.MaxPods, Source: "node", Verdict: introspect.MaxPodsOK},
		ADDs:    &introspect.RequestCounts{Failed: &none}, DELs: &introspect.RequestCounts{Failed: &none},
		Trunk: &introspect.Trunk{Enabled: c.PodENI},
	}
	if t := p.trunk(); t != nil {
		s.Trunk.ENIID = t.ID
	}
	if t, ok := p.instance(); ok {
		s.Trunk.Supported, s.Trunk.BranchLimit = ref(t.TrunkingCompatible == limits.Yes), &t.BranchENIs
	}
	cards := map[int]*introspect.CardSummary{}
	for _, e := range p.datastore() {
		card := cards[e.Card]
		if card == nil {
			s.Cards = append(s.Cards, introspect.CardSummary{Card: e.Card, Mode: introspect.ModeSecondaryIP, ENIs: ref(0), OtherENIs: ref(0), Cooling: ref(0), Prefixes: ref(0)})
			card = &s.Cards[len(s.Cards)-1]
			cards[e.Card] = card
		}
		eni := introspect.ENISummary{ID: e.ID, Card: e.Card, Device: e.Device, SubnetID: e.Subnet, Total: len(e.IPs) + p.prefixSize()*len(e.Prefixes)}
		for _, r := range p.records {
			switch {
			case r.eni.ID != e.ID:
			case r.pod != "":
				eni.Assigned++
			case p.at.Sub(r.released) < c.Cooldown:
				eni.Cooling++
			}
		}
		eni.Free = eni.Total - eni.Assigned - eni.Cooling
		if e.Primary {
			eni.Flags = append(eni.Flags, introspect.ENIFlagPrimary)
		}
		s.ENIs = append(s.ENIs, eni)
		*card.ENIs++
		*card.Cooling += eni.Cooling
		*card.Prefixes += len(e.Prefixes)
		card.Total, card.Assigned, card.Free = card.Total+eni.Total, card.Assigned+eni.Assigned, card.Free+eni.Free
		if len(e.Prefixes) > 0 {
			card.Mode = introspect.ModePrefix
		}
	}
	for i := range p.Subnets {
		w := &p.Subnets[i]
		s.Subnets = append(s.Subnets, introspect.Subnet{ID: w.ID, CIDR: w.CIDR.String(), Available: w.Available, AsOf: ref(p.at.Add(-time.Minute))})
	}
	return s
}

// texts returns nil, null in the document, if nothing is set.
func texts(cidrs []netip.Prefix) (out []string) {
	for _, c := range cidrs {
		out = append(out, c.String())
	}
	return out
}

// randomSNAT returns the number for the setting in upstream's document.
func randomSNAT(s config.SNATPorts) int {
	switch s {
	case config.SNATPortsPRNG:
		return 2
	case config.SNATPortsHash:
		return 1
	}
	return 0
}

// declared returns nil for a setting that is not in the environment.
func declared(s config.Setting) *string {
	if !s.Set {
		return nil
	}
	return &s.Declared
}
