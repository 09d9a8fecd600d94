package sim

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/testenv/aws/ec2model"
)

// EC2's names of states.
const (
	statusInUse     = "in-use"
	statusAttaching = "attaching"
	statusDetaching = "detaching"
)

// clusterName is the cluster of all nodes.
const clusterName = "sim"

// ec2 is the account: subnets and network interfaces.
type ec2 struct {
	w         *World
	subnets   []*subnet
	enis      map[ipam.ENIID]*eni
	tokens    map[string]ipam.ENIID // by client token
	buckets   map[string]*ec2model.Bucket
	lastID    uint64
	shortages int                       // number of create calls still to be refused with InsufficientFreeAddressesInSubnet
	made      *eni                      // created by a daemon's latest call
	views     map[ipam.ENIID]resync.ENI // what lists show; nil if they do not lag
}

// eni is one network interface.
type eni struct {
	resync.ENI
	subnet *subnet
	node   *node // the node it is attached to, nil if none
	maker  *node // the node whose daemon created it, nil if somebody else did
	stuck  bool  // its attachment makes no progress until the world settles

	loose      time.Duration // since when it has been unattached
	unreported bool          // the daemon that created it never got the answer

	byOthers bool          // somebody else detached it
	retagged time.Duration // when somebody else last changed whether it belongs to the CNI; 0: never

	adopted bool // created by somebody else, then managed by a daemon
}

func newEC2(w *World) *ec2 {
	e := &ec2{w: w, enis: map[ipam.ENIID]*eni{}, tokens: map[string]ipam.ENIID{}, buckets: map[string]*ec2model.Bucket{}}
	for i, spec := range w.Scenario.Subnets {
		s := &subnet{
			Space: ec2model.NewSpace(spec.CIDR), id: fmt.Sprintf("subnet-%017x", i+1), az: fmt.Sprintf("sim-1%c", 'a'+spec.AZ), cidr: spec.CIDR, tags: spec.Tags,
		}
		for range spec.TakenByOthers {
			s.foreign = append(s.foreign, s.take(s.Find, 1, w.dice.ec2.Below(s.Size()))...)
		}
		e.subnets = append(e.subnets, s)
	}
	if w.Scenario.ListLag > 0 {
		e.views = map[ipam.ENIID]resync.ENI{}
	}
	return e
}

func (e *ec2) id(kind string) string {
	e.lastID++
	return fmt.Sprintf("%s-%017x", kind, e.lastID)
}

func (e *ec2) subnet(id string) *subnet {
	for _, s := range e.subnets {
		if s.id == id {
			return s
		}
	}
	return nil
}

// place returns where EC2 starts to look for free addresses in a subnet.
func (e *ec2) place(s *subnet) int {
	if e.w.Scenario.LowestFirst {
		return 0
	}
	return e.w.dice.ec2.Below(s.Size())
}

// draw takes addresses or prefixes from a subnet.
func (e *ec2) draw(s *subnet, ips, prefixes int) ([]netip.Prefix, error) {
	blocks := s.take(s.FindBlocks, prefixes, e.place(s))
	if prefixes > 0 && blocks == nil {
		return nil, errFragmented
	}
	addrs := s.take(s.Find, ips, e.place(s))
	if ips > 0 && addrs == nil {
		for _, b := range blocks {
			s.Mark(b, false)
		}
		return nil, errExhausted
	}
	return append(addrs, blocks...), nil
}

// create creates an unattached ENI.
func (e *ec2) create(s *subnet, ips, prefixes int, description string, tags map[string]string) (*eni, error) {
	if s.Free() < 1+ips+ec2model.BlockSize*prefixes {
		return nil, errExhausted
	}
	cidrs, err := e.draw(s, ips, prefixes)
	if err != nil {
		return nil, err
	}
	primary := s.take(s.Find, 1, e.place(s))
	if primary == nil {
		for _, p := range cidrs {
			s.Mark(p, false)
		}
		return nil, errExhausted
	}
	id := e.id("eni")
	x := &eni{subnet: s, loose: e.w.clock, ENI: resync.ENI{
		ID: ipam.ENIID(id), MAC: macOf(e.lastID), Status: resync.StatusAvailable, InterfaceType: "interface", Description: description,
		SubnetID: s.id, PrimaryIP: primary[0].Addr(), Tags: tags,
	}}
	x.add(cidrs)
	e.enis[x.ID] = x
	e.changed(x)
	return x, nil
}

func macOf(n uint64) string {
	return fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func (x *eni) add(cidrs []netip.Prefix) {
	for _, p := range cidrs {
		if p.IsSingleIP() {
			x.SecondaryIPs = append(x.SecondaryIPs, p.Addr())
		} else {
			x.Prefixes = append(x.Prefixes, p)
		}
	}
}

// table returns the route table of the ENI's pods.
func (x *eni) table() int { return netnames.RouteTable(x.Card, x.Device) }

// slots returns how much of the type's addresses-per-interface limit the ENI uses.
func (x *eni) slots() int { return 1 + len(x.SecondaryIPs) + len(x.Prefixes) }

// has reports whether the ENI has an address, for use by pods.
func (x *eni) has(a netip.Addr) bool {
	return slices.Contains(x.SecondaryIPs, a) || slices.ContainsFunc(x.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (x *eni) holds(p netip.Prefix) bool {
	if p.IsSingleIP() {
		return slices.Contains(x.SecondaryIPs, p.Addr())
	}
	return slices.Contains(x.Prefixes, p)
}

// attach starts an attachment.
func (e *ec2) attach(x *eni, n *node, device int) string {
	x.node, x.Status, x.AttachmentStatus = n, statusInUse, statusAttaching
	x.AttachmentID, x.InstanceID, x.Device, x.Card = e.id("eni-attach"), n.instance, device, 0
	n.attached[x.ID] = x
	attachment := x.AttachmentID
	e.changed(x)
	e.w.after(e.w.attachTime(), func() { e.attached(x, attachment) })
	return attachment
}

// attached completes an attachment, unless it is stuck or gone.
func (e *ec2) attached(x *eni, attachment string) {
	if x.AttachmentID != attachment || x.AttachmentStatus != statusAttaching {
		return
	}
	if x.stuck {
		e.w.after(time.Second, func() { e.attached(x, attachment) })
		return
	}
	x.AttachmentStatus = resync.AttachmentAttached
	e.w.tracef("%s: %s attached at device %d", x.node.name, x.ID, x.Device)
	e.changed(x)
	n := x.node
	e.w.after(e.w.linkTime(), func() {
		if x.AttachmentID == attachment && x.AttachmentStatus == resync.AttachmentAttached {
			n.kernel.plug(x)
		}
	})
}

// detach starts a detachment.
func (e *ec2) detach(x *eni) {
	x.AttachmentStatus = statusDetaching
	attachment, n := x.AttachmentID, x.node
	e.changed(x)
	e.w.after(e.w.dice.ec2.span(100*time.Millisecond, time.Second), func() { n.kernel.unplug(x) })
	e.w.after(e.w.dice.ec2.span(time.Second, 12*time.Second), func() { e.detached(x, attachment) })
}

func (e *ec2) detached(x *eni, attachment string) {
	if x.AttachmentID != attachment {
		return
	}
	if x.stuck {
		e.w.after(time.Second, func() { e.detached(x, attachment) })
		return
	}
	e.w.tracef("%s: %s detached", x.node.name, x.ID)
	n := x.node
	n.kernel.unplug(x)
	delete(n.attached, x.ID)
	x.node, x.Status, x.loose = nil, resync.StatusAvailable, e.w.clock
	x.AttachmentID, x.AttachmentStatus, x.InstanceID, x.Device = "", "", "", 0
	e.changed(x)
	n.metadata.refresh(x)
}

// delete removes an unattached ENI and frees its addresses.
func (e *ec2) delete(x *eni) {
	delete(e.enis, x.ID)
	x.subnet.Mark(netip.PrefixFrom(x.PrimaryIP, 32), false)
	for _, p := range x.CIDRs() {
		x.subnet.Mark(p, false)
	}
	e.changed(x)
}

// assign adds addresses or prefixes.
func (e *ec2) assign(x *eni, ips, prefixes int) ([]netip.Prefix, error) {
	cidrs, err := e.draw(x.subnet, ips, prefixes)
	if err != nil {
		return nil, err
	}
	x.add(cidrs)
	e.changed(x)
	return cidrs, nil
}

// unassign removes addresses or prefixes from an ENI.
func (e *ec2) unassign(x *eni, cidrs []netip.Prefix) {
	for _, p := range cidrs {
		x.subnet.Mark(p, false)
	}
	// Descriptions share these lists, so replace them instead of changing them.
	x.SecondaryIPs = slices.DeleteFunc(slices.Clone(x.SecondaryIPs), func(a netip.Addr) bool { return slices.Contains(cidrs, netip.PrefixFrom(a, 32)) })
	x.Prefixes = slices.DeleteFunc(slices.Clone(x.Prefixes), func(p netip.Prefix) bool { return slices.Contains(cidrs, p) })
	e.changed(x)
}

// changed makes lists and the metadata service show a change, after their lag.
func (e *ec2) changed(x *eni) {
	e.w.mix(e.lastID)
	if x.node != nil {
		x.node.metadata.refresh(x)
	}
	if e.views == nil {
		return
	}
	e.w.after(e.w.dice.ec2.span(0, e.w.Scenario.ListLag), func() {
		if now, there := e.enis[x.ID]; there {
			e.views[x.ID] = now.description()
		} else {
			delete(e.views, x.ID)
		}
	})
}

// description returns a copy that later changes do not affect.
func (x *eni) description() resync.ENI {
	d := x.ENI
	d.SecondaryIPs, d.Prefixes, d.Tags = slices.Clone(d.SecondaryIPs), slices.Clone(d.Prefixes), maps.Clone(d.Tags)
	return d
}

// list describes the ENIs that match, ordered by id.
func (e *ec2) list(match func(*resync.ENI) bool) []resync.ENI {
	var out []resync.ENI
	if e.views != nil {
		for _, v := range e.views {
			if match(&v) {
				out = append(out, v)
			}
		}
	} else {
		for _, x := range e.enis {
			if match(&x.ENI) {
				out = append(out, x.description())
			}
		}
	}
	slices.SortFunc(out, func(a, b resync.ENI) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// ordered returns all ENIs by id.
func (e *ec2) ordered() []*eni {
	out := make([]*eni, 0, len(e.enis))
	for _, x := range e.enis {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *eni) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// describeSubnets describes the subnets in a node's zone.
func (e *ec2) describeSubnets(n *node) []resync.Subnet {
	out := make([]resync.Subnet, 0, len(e.subnets))
	for _, s := range e.subnets {
		if s.az == n.primary.subnet.az {
			out = append(out, resync.Subnet{ID: s.id, AZ: s.az, CIDR: s.cidr, AvailableIPs: s.Free(), Tags: maps.Clone(s.tags)})
		}
	}
	return out
}

// byAttachment finds an ENI by its attachment.
func (e *ec2) byAttachment(id string) *eni {
	for _, x := range e.enis {
		if x.AttachmentID == id {
			return x
		}
	}
	return nil
}

// creationTags returns the tags that a daemon puts on what it creates.
func creationTags(n *node, at time.Time) map[string]string {
	return map[string]string{
		resync.TagInstanceID: n.instance, resync.TagClusterName: clusterName, resync.TagCreatedAt: at.UTC().Format(time.RFC3339),
	}
}

// createFor is CreateNetworkInterface called by a node's daemon.
func (e *ec2) createFor(n *node, spec keeper.CreateENI) (resync.ENI, error) {
	if id, again := e.tokens[spec.Token]; again && spec.Token != "" {
		if x, there := e.enis[id]; there {
			e.made = x
			return x.description(), nil
		}
		return resync.ENI{}, refused("IdempotentParameterMismatch: the ENI of token %s is gone", spec.Token)
	}
	if e.shortages > 0 {
		e.shortages--
		return resync.ENI{}, errExhausted
	}
	s := e.subnet(spec.SubnetID)
	if s == nil {
		return resync.ENI{}, refused("InvalidSubnetID.NotFound: %s", spec.SubnetID)
	}
	x, err := e.create(s, spec.IPs, spec.Prefixes, resync.DescriptionPrefix+n.instance, creationTags(n, spec.CreatedAt))
	if err != nil {
		return resync.ENI{}, err
	}
	x.maker, e.made = n, x
	if spec.Token != "" {
		e.tokens[spec.Token] = x.ID
	}
	return x.description(), nil
}

// secondary returns the ENIs that daemons created and that are attached to a node, by id.
func (e *ec2) secondary(n *node) []*eni {
	return slices.DeleteFunc(e.ordered(), func(x *eni) bool { return x.node != n || x == n.primary || x.maker == nil })
}
