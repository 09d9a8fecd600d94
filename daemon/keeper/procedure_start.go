package keeper

import (
	"context"
	"net/netip"
	"slices"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// StartHost is what a start needs from the node besides [Host].
type StartHost interface {
	// SetUpFound sets up ENIs that were attached before, without waiting long for their links.
	// It returns an error per ENI; nil if the ENI was set up.
	SetUpFound(ctx context.Context, enis []ipam.ENI) []error
	// TableFor returns the route table that the kernel has for an ENI.
	TableFor(ctx context.Context, card, device int, primary netip.Addr, enisPerCard int) (int, error)
	// FixPodTable routes the traffic of a pod through a table.
	FixPodTable(ctx context.Context, address netip.Addr, table int) error
	// DropENIRules removes the rules of all ENIs except those with these addresses.
	DropENIRules(ctx context.Context, attached []netip.Addr) ([]netip.Addr, error)
	// Report takes what a start did or failed to do.
	Report(StartStep)
}

// StartStep is something that a start did to the kernel or, with an error, failed to do.
type StartStep struct {
	Kind    StartKind
	ENI     ipam.ENIID // of Unlisted, TableRead, SetUpLate
	Device  int        // of Unlisted
	Address netip.Addr
	Table   int // of PodTableFixed
	Err     error
}

// StartKind is a kind of [StartStep].
type StartKind uint8

// Kinds of steps. TableRead and SetUpLate are reported only when they fail.
const (
	Unlisted       StartKind = iota + 1 // nothing done: only the metadata shows the ENI
	TableRead                           // the route table of an ENI on an additional network card
	SetUpLate                           // an ENI is set up while the daemon serves
	StaleDropped                        // the rules of a stale allocation
	PodTableFixed                       // the rule of a running pod
	HalfDropped                         // the rules of an interrupted ADD
	ENIRuleDropped                      // the rule of an ENI that is gone
)

// Begin fills the book of a new Keeper from what a start has read (it computes Found, Usable
// and Late of s itself) and brings the kernel's rules into line with it.
func Begin(ctx context.Context, c interface {
	Calls
	StartHost
}, k *Keeper, s Start) (Restored, error) {
	var err error
	if s.Found, err = k.Found(c.Now(), s.Attached, s.Interfaces, s.Subnets); err != nil {
		return Restored{}, err
	}
	for _, o := range s.Found.Others {
		if !slices.ContainsFunc(s.Attached, func(e resync.ENI) bool { return e.ID == o.ID }) {
			c.Report(StartStep{Kind: Unlisted, ENI: o.ID, Device: o.Device})
		}
	}
	k.findTables(ctx, c, s.Found.SetUp)
	s.Usable, s.Late = setUpFound(ctx, c, s.Found.SetUp)
	pods := s.Routes
	s.Routes = routed(pods)
	known := make(map[netip.Addr]resync.PodRoute, len(pods))
	for _, p := range pods {
		known[p.Address] = p
	}
	restored, err := k.Restore(c.Now(), s)
	if err != nil {
		return Restored{}, err
	}
	drop := func(kind StartKind, a netip.Addr) {
		if !k.Holds(a) {
			c.Report(StartStep{Kind: kind, Address: a, Err: c.DropPod(ctx, a)})
		}
	}
	for _, e := range restored.Stale {
		drop(StaleDropped, e.Address())
	}
	for _, a := range k.Assignments() {
		// The traffic of running pods goes through the table of their ENI.
		if r, there := known[a.Address]; there && a.ENI != "" && (!r.ToRule || r.Table != a.RouteTable) {
			c.Report(StartStep{Kind: PodTableFixed, Address: a.Address, Table: a.RouteTable, Err: c.FixPodTable(ctx, a.Address, a.RouteTable)})
		}
	}
	for _, p := range pods {
		if p.HostLink == "" { // they would misroute the next pod that gets the address
			drop(HalfDropped, p.Address)
		}
	}
	dropENIRules(ctx, c, s)
	if s.Restart {
		k.deleteLeftFlows(ctx, c, func(a netip.Addr) bool { return known[a].HostLink != "" })
	}
	return restored, nil
}

// findTables sets the route tables of ENIs on additional network cards to those that the
// kernel has for them: pods of an earlier daemon are routed by these.
func (k *Keeper) findTables(ctx context.Context, c StartHost, found []resync.Attached) {
	for i := range found {
		e := &found[i].ENI
		if e.Card == 0 || e.Card >= len(k.limits.ENIsByCard) {
			continue
		}
		table, err := c.TableFor(ctx, e.Card, e.Device, e.PrimaryIP, k.limits.ENIsByCard[e.Card])
		if err != nil {
			c.Report(StartStep{Kind: TableRead, ENI: e.ID, Err: err})
			continue
		}
		e.RouteTable = table
	}
}

// setUpFound puts the routes of every secondary ENI into the kernel. An ENI whose routes
// cannot be made is late: it stays out of the pool until they are (docs/compatibility.md,
// 13.1-13), and serving does not wait for it.
func setUpFound(ctx context.Context, c StartHost, found []resync.Attached) (usable, late []resync.Attached) {
	var secondary []ipam.ENI
	for _, a := range found {
		if !a.ENI.Primary {
			secondary = append(secondary, a.ENI)
		}
	}
	failed := make(map[ipam.ENIID]error)
	for i, err := range c.SetUpFound(ctx, secondary) {
		if err != nil {
			failed[secondary[i].ID] = err
		}
	}
	for _, a := range found {
		if err := failed[a.ENI.ID]; err != nil {
			c.Report(StartStep{Kind: SetUpLate, ENI: a.ENI.ID, Err: err})
			late = append(late, a)
			continue
		}
		usable = append(usable, a)
	}
	return usable, late
}

// dropENIRules removes the rules of ENIs that an earlier daemon detached: neither EC2 nor the
// metadata shows them.
func dropENIRules(ctx context.Context, c StartHost, s Start) {
	var attached []netip.Addr
	for _, e := range s.Attached {
		attached = append(attached, e.PrimaryIP)
		attached = append(attached, e.IPv6s...)
	}
	for _, f := range s.Interfaces {
		attached = append(attached, f.IPv4s[:min(1, len(f.IPv4s))]...)
		attached = append(attached, f.IPv6s...)
	}
	gone, err := c.DropENIRules(ctx, attached)
	if err != nil {
		c.Report(StartStep{Kind: ENIRuleDropped, Err: err})
	}
	for _, a := range gone {
		c.Report(StartStep{Kind: ENIRuleDropped, Address: a})
	}
}
