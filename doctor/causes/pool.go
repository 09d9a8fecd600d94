package causes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/promtext"
	"cnictl/daemon/resync"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// pool holds the addresses of one network card, counted as the daemon counts them.
type pool struct {
	card int
	pd   bool // it hands out addresses of prefixes

	either bool // whether it does is unknown

	enis, excluded, trunks, unmanaged int // interfaces
	total, assigned, cooling          int // usable addresses
	unusable                          int // in the other mode's CIDRs, or on excluded interfaces
	otherMode                         int // of these, those in the other mode's CIDRs
	sum                               int // all existing addresses, usable or not

	sized                   bool // the type's limits are known
	slots, maxENI, limitENI int
	reserve                 int // slots kept for a trunk
	roomForENI, roomOnENI   bool
	capacity                int // addresses that it can ever hold
	designed                int // the same by type and settings alone
}

// assignable returns how many addresses can be given to pods now.
func (p *pool) assignable() int { return p.total - p.assigned - p.cooling }

// canGrow reports whether an interface or a CIDR can be added.
func (p *pool) canGrow() bool { return p.roomForENI || p.roomOnENI }

func (p *pool) String() string {
	return fmt.Sprintf("%d of %d assigned, %d cooling, %d free", p.assigned, p.total, p.cooling, p.assignable())
}

// cooldown returns how long an address cools down after its pod.
func (c *Case) cooldown() time.Duration {
	if c.older(evidence.Version{1, 15}) {
		return 30 * time.Second
	}
	return c.Settings.Cooldown
}

// limits returns the limits of the instance type.
func (c *Case) limits() (evidence.InstanceType, bool) {
	t := c.R.InstanceType
	return t.Content, t.OK() && t.Content.Known && t.Content.MaxENIs != nil && t.Content.IPv4PerENI != nil
}

// prefixes reports whether prefix delegation is on and works: it needs Nitro or bare metal.
func (c *Case) prefixes() bool {
	return c.Settings.PrefixDelegation && !c.noPrefixes()
}

// noPrefixes reports whether the type is known not to support prefixes.
func (c *Case) noPrefixes() bool {
	t, ok := c.limits()
	metal := t.BareMetal != nil && *t.BareMetal
	known := t.Hypervisor != "" || t.BareMetal != nil // EC2 names no hypervisor of bare metal and of a few old types
	return ok && known && t.Hypervisor != "nitro" && !metal
}

func (c *Case) pools() []*pool {
	if !c.R.ENIs.OK() {
		return nil
	}
	by := map[int]*pool{}
	var out []*pool
	at := func(card int) *pool {
		if by[card] == nil {
			by[card] = &pool{card: card, pd: c.prefixes(), either: !c.Knows("ENABLE_PREFIX_DELEGATION")}
			out = append(out, by[card])
		}
		return by[card]
	}
	at(0)
	for i := range c.R.ENIs.Content {
		at(c.R.ENIs.Content[i].Card).count(c, &c.R.ENIs.Content[i])
	}
	for _, p := range out {
		c.size(p)
	}
	slices.SortFunc(out, func(a, b *pool) int { return a.card - b.card })
	return out
}

func (p *pool) count(c *Case, e *evidence.ENI) {
	p.enis++
	if e.Trunk {
		p.trunks++
	}
	if e.Excluded {
		p.excluded++
	}
	add := func(addresses []evidence.Address, size int, prefix bool) {
		other := prefix != p.pd && !p.either
		if p.sum += size; e.Excluded || other {
			if p.unusable += size; other && !e.Excluded {
				p.otherMode += size
			}
			return
		}
		if p.either && prefix {
			p.pd = true
		}
		p.total += size
		for _, a := range addresses {
			switch {
			case a.Pod != nil:
				p.assigned++
			case c.cools(a):
				p.cooling++
			}
		}
	}
	add(e.IPs, len(e.IPs), false)
	for _, prefix := range e.Prefixes {
		add(prefix.IPs, sizeOf(prefix.CIDR), true)
	}
}

// cools reports whether an address is in cooldown.
func (c *Case) cools(a evidence.Address) bool {
	return a.Pod == nil && !a.UnassignedAt.IsZero() && c.Now.Sub(a.UnassignedAt) <= c.cooldown()
}

// sizeOf returns how many addresses of a prefix pods can have. IPv6 prefixes count as 65536.
func sizeOf(cidr netip.Prefix) int {
	return 1 << min(16, cidr.Addr().BitLen()-cidr.Bits())
}

// stated returns what our daemon reports of a card: it has the limits that EC2 stated below those of the type.
func (c *Case) stated(card int) introspect.CardSummary {
	s, _ := find(c.R.Summary.Content.Cards, func(s introspect.CardSummary) bool { return s.Card == card })
	return s
}

// size adds the limits by type and settings.
func (c *Case) size(p *pool) {
	t, ok := c.limits()
	if !ok {
		return
	}
	i := limits.Instance{MaxENIs: *t.MaxENIs, IPv4PerENI: *t.IPv4PerENI, Cards: []limits.Card{{Index: p.card, MaxENIs: *t.MaxENIs}}}
	if known, ok := limits.Lookup(t.InstanceType); ok {
		i.Cards = known.Cards
	}
	p.unmanaged = len(c.unknownENIs(p.card))
	if c.Settings.PodENI && p.card == 0 && p.trunks == 0 && (t.Trunk == nil || *t.Trunk) {
		p.reserve = 1
	}
	in := limits.PoolInput{
		MaxENI: c.Settings.MaxENI, Trunk: p.reserve+p.trunks > 0, CustomNetworking: c.Settings.CustomNetworking, Prefixes: p.pd,
	}
	if s := c.stated(p.card).StatedENILimit; s != nil {
		in.StatedENIs = s.Limit
	}
	if s := c.stated(p.card).StatedSlots; s != nil {
		in.StatedSlots = s.Limit
	}
	designed := i.CardPool(p.card, in)
	p.sized, p.limitENI = true, i.CardPool(p.card, limits.PoolInput{}).Limit
	p.slots, p.maxENI, p.designed = designed.Slots, designed.Limit, designed.Addresses
	stay := slices.DeleteFunc(c.unknownENIs(p.card), func(o other) bool { return c.settling(o.id) }) // the rest is about to join or leave
	in.UnmanagedENIs, in.ExcludedENIs = len(stay), p.excluded
	in.PrimaryExcluded = slices.ContainsFunc(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.Primary && e.Excluded })
	p.capacity = i.CardPool(p.card, in).Addresses
	p.roomForENI = p.enis < p.maxENI-p.unmanaged-p.reserve
	for i := range c.R.ENIs.Content {
		if e := &c.R.ENIs.Content[i]; e.Card == p.card && !e.Excluded && !e.Trunk && !(e.Primary && c.Settings.CustomNetworking) &&
			len(e.IPs)+len(e.Prefixes) < p.slots {
			p.roomOnENI = true
		}
	}
}

// other is an attached interface that the daemon does not manage.
type other struct {
	id, kind string
	made     bool // by a daemon on the node, which should have it in its datastore
}

// foreign returns the interfaces that are attached to a card and not in the datastore.
func (c *Case) foreign(card int) []other {
	if !c.R.ENIs.OK() {
		return nil
	}
	var out []other
	if c.R.Interfaces.OK() && c.instance() != "" {
		for _, e := range c.attached() {
			if _, managed := c.managed(e.ID); e.Card == card && !managed && e.Type != "trunk" {
				made := e.Tags[resync.TagInstanceID] != "" && e.Tags[resync.TagNoManage] != "true"
				out = append(out, other{e.ID, c.kindOf(e), made})
			}
		}
		return out
	}
	for _, e := range c.R.IMDS.Content.ENIs {
		if _, managed := c.managed(e.ID); e.Card == card && !managed {
			out = append(out, other{id: e.ID, kind: kindUnknown})
		}
	}
	return out
}

func (c *Case) kindOf(e evidence.Interface) string {
	switch {
	case e.Tags[resync.TagNoManage] == "true":
		return "tagged " + resync.TagNoManage
	case strings.HasPrefix(e.Type, "efa"):
		return e.Type
	case c.Knows("MANAGE_UNTAGGED_ENI") && !c.Settings.ManageUntagged:
		return "untagged, MANAGE_UNTAGGED_ENI=false"
	}
	return kindUnknown
}

// kindUnknown is the kind of interfaces without a mark that says why they are not managed.
const kindUnknown = "not in the datastore"

// pool returns the first network card's pool, which serves ordinary pods, nil if unknown.
func (c *Case) pool() *pool {
	if len(c.Pools) == 0 {
		return nil
	}
	return c.Pools[0]
}

// onPool states something about the pool.
func (c *Case) onPool(path, expected string, judge func(*pool) (any, State)) Fact {
	return On(c, c.R.ENIs, "intro.enis", path, expected, func([]evidence.ENI) (any, State) { return judge(c.pool()) })
}

// dry states that no address can be given to a pod. Only the first network card counts: the
// others serve only pods that ask for them. In an IPv6 cluster a prefix never runs dry.
func (c *Case) dry() Fact {
	return c.onPool("assignable addresses", "at least 1", func(p *pool) (any, State) {
		return p, stateOf(p.assignable() <= 0)
	})
}

// growable states that an interface or a CIDR can still be added.
func (c *Case) growable() Fact {
	return c.onPool("room to grow", "room for an interface or an address", func(p *pool) (any, State) {
		if !p.sized {
			return nil, Unread
		}
		return fmt.Sprintf("%d of %d interfaces (%d taken by others, %d reserved for a trunk)", p.enis, p.maxENI, p.unmanaged, p.reserve),
			stateOf(p.canGrow())
	})
}

// unlessIdle lowers a finding about an empty pool to info if no pod asks for an address: until
// then a full node does no harm.
func (c *Case) unlessIdle(cd Result) Result {
	if c.failing().State != Yes && (c.Earlier == nil || c.Earlier.failing().State != Yes) {
		return cd.As(catalogue.Info)
	}
	return cd
}

// growthStopped states that the pool has reached max-pods, where it stops growing.
func (c *Case) growthStopped() Fact {
	return c.onPool("addresses against max-pods", "below max-pods", func(p *pool) (any, State) {
		most, source := c.maxPods()
		if source == "" {
			return nil, Unread
		}
		return fmt.Sprintf("%d of max-pods %d", p.total, most), stateOf(p.total >= most)
	})
}

// short states that the daemon should add addresses: the pool is below its warm target, or pods
// wait.
func (c *Case) short() Fact {
	f := c.onPool("addresses against the warm target", "the target is met", func(p *pool) (any, State) {
		if !c.Knows("WARM_IP_TARGET", "WARM_ENI_TARGET") {
			if p.assignable() <= 0 {
				return "no address is free", Yes
			}
			return nil, Unread
		}
		want := c.shortage(p)
		return fmt.Sprintf("%d below target", want), stateOf(want > 0)
	})
	return f
}

// shortage returns how many addresses the effective rule asks for.
func (c *Case) shortage(p *pool) int {
	s := c.Settings
	if s.IPv6 {
		return 0
	}
	if most, source := c.maxPods(); source != "" && p.total >= most && !c.Ours {
		return 0
	}
	available := p.total - p.assigned
	if c.Ours {
		available = p.assignable()
	}
	waiting := 0
	if c.Ours && p.assignable() <= 0 {
		waiting = max(1, len(c.waiting()))
	}
	warm := s.WarmENI * p.slots
	if p.slots == 0 {
		warm = s.WarmENI
	}
	if p.pd {
		warm = limits.PrefixSize * s.WarmPrefix
	}
	if s.WarmIP > 0 || s.MinIP > 0 {
		return max(waiting, s.WarmIP-available, s.MinIP-p.total, 0)
	}
	if warm == 0 {
		warm = 1
	}
	return max(waiting, warm-available, 0)
}

// overcommit returns how many of the pods that the scheduler may place can never get an address.
func (c *Case) overcommit() (n int, known bool) {
	return c.beyond(func(p *pool) (int, bool) { return p.capacity, p.trunks > 0 })
}

// misfit returns the overcommit by type and settings alone. It ignores interfaces of others and
// excluded subnets, and counts a trunk that is still to come.
func (c *Case) misfit() (n int, known bool) {
	return c.beyond(func(p *pool) (int, bool) { return p.designed, p.trunks+p.reserve > 0 })
}

// beyond returns how far max-pods exceeds what a pool can hold, including its branch ENIs.
func (c *Case) beyond(capacity func(*pool) (n int, branches bool)) (n int, known bool) {
	t, ok := c.limits()
	p := c.pool()
	most, source := c.maxPods()
	if source == "" || c.Settings.IPv6 {
		return 0, false
	}
	if !ok || !c.Knows("ENABLE_PREFIX_DELEGATION", "MAX_ENI", "ENABLE_POD_ENI") {
		if m := c.R.Summary.Content.MaxPods; m != nil && m.TotalCapacity != nil {
			return most - *m.TotalCapacity, true // as our daemon counts, which knows its settings
		}
		return 0, false
	}
	if p == nil {
		// Without the datastore, assume a node as it should be.
		p = &pool{pd: c.prefixes(), enis: 1}
		c.size(p)
	}
	n, branches := capacity(p)
	if branches && t.BranchENIs != nil {
		n += *t.BranchENIs
	}
	return most - c.hostPods() - n, true
}

// candidates returns the subnets that new addresses can come from, as far as known. Our daemon
// lists them too.
func (c *Case) candidates() (subnets []evidence.Subnet, known bool) {
	node := c.subnetOfNode()
	own, ok := c.subnet(node)
	if !ok || own.Zone == "" || !c.Knows("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "ENABLE_SUBNET_DISCOVERY") {
		for _, s := range c.R.Summary.Content.Subnets {
			cidr, _ := netip.ParsePrefix(s.CIDR)
			subnets = append(subnets, evidence.Subnet{ID: s.ID, CIDR: cidr, Available: s.Available})
		}
		return subnets, len(subnets) > 0
	}
	policy := resync.SubnetPolicy{NodeSubnet: node, ClusterName: c.Settings.ClusterName, Discovery: c.Settings.SubnetDiscovery,
		Custom: c.Settings.CustomNetworking}
	if policy.Custom {
		name, ok := c.eniConfigName()
		if !ok || !c.R.ENIConfigs.OK() {
			return nil, false
		}
		own, _ := find(c.R.ENIConfigs.Content, func(e evidence.ENIConfig) bool { return e.Name == name })
		policy.CustomSubnet = own.Subnet
	}
	for _, s := range c.R.Subnets.Content {
		if s.VPC != "" && own.VPC != "" && s.VPC != own.VPC || s.Zone != own.Zone && !policy.Custom {
			continue
		}
		if c.usable(policy, s) {
			subnets = append(subnets, s)
		}
	}
	return subnets, true
}

// onSubnets states something about the subnets that new addresses can come from.
func (c *Case) onSubnets(expected string, judge func([]evidence.Subnet) State) Fact {
	source, missing := "ec2.subnet", c.R.Subnets.Missing
	if missing != "" && c.R.Summary.OK() {
		source = "intro.summary"
	}
	subnets, known := c.candidates()
	const path = "free addresses of the subnets that may be used"
	if !known {
		return c.Unread(source, path, expected, or(missing, "the node's subnet is unknown"))
	}
	f := Fact{State: judge(subnets), Source: source, Path: path, Value: freeAddresses(subnets), Expected: expected, At: c.Now}
	if f.State == Unread {
		f.Value, f.Reason = "", "the number is unknown"
	}
	return f
}

// usable applies the subnet policy of the release: up to v1.22.0, upstream included a subnet for
// any value of the tag, and its own always.
func (c *Case) usable(policy resync.SubnetPolicy, s evidence.Subnet) bool {
	tags := s.Tags
	if c.older(evidence.Version{1, 22, 1}) {
		switch _, tagged := tags[resync.TagSubnetRole]; {
		case s.ID == policy.NodeSubnet:
			tags = nil
		case tagged:
			tags = map[string]string{resync.TagSubnetRole: "1"}
		}
		if c.Release.Before(evidence.Version{1, 18}) {
			policy.Discovery = false
		}
	}
	return policy.Usable(resync.Subnet{ID: s.ID, AZ: s.Zone, CIDR: s.CIDR, Tags: tags})
}

func (c *Case) subnet(id string) (evidence.Subnet, bool) {
	return find(c.R.Subnets.Content, func(s evidence.Subnet) bool { return s.ID == id })
}

// PrimaryExcluded states that the tags of the primary interface's subnet exclude it for pods.
func (c *Case) PrimaryExcluded() Fact {
	return On(c, c.R.Subnets, "ec2.subnet", "tags of the node's subnet", "for pods", func([]evidence.Subnet) (any, State) {
		own, known := c.subnet(c.subnetOfNode())
		if !known {
			return nil, Unread
		}
		excluded := resync.SubnetPolicy{ClusterName: c.Settings.ClusterName}.Excluded(resync.Subnet{Tags: own.Tags})
		return map[bool]string{true: "excluded", false: "for pods"}[excluded], stateOf(excluded)
	})
}

// request returns the least that EC2 is asked for: an address or a block, and one more address if
// only a new interface can provide it.
func (c *Case) request(p *pool) int {
	switch {
	case p == nil && c.prefixes():
		return limits.PrefixSize
	case p == nil || !p.pd:
		return 1
	case p.sized && !p.roomOnENI:
		return limits.PrefixSize + 1
	}
	return limits.PrefixSize
}

// WarmLack is what a node's warm pool lacks, and the subnet that it will come from.
type WarmLack struct {
	Subnet            string // empty if no subnet may be used
	Addresses, Blocks int    // Blocks of 16 in prefix mode, 0 otherwise
}

// WarmLack returns what the warm pool lacks: nothing in an IPv6 cluster, where one /80 has addresses
// for all pods. It is unknown without the datastore or the node's subnet.
func (c *Case) WarmLack() (lack WarmLack, known bool) {
	p := c.pool()
	switch {
	case c.Settings.IPv6:
		return WarmLack{}, true
	case p == nil || c.subnetOfNode() == "":
		return WarmLack{}, false
	}
	lack = WarmLack{Subnet: c.growsIn(p), Addresses: c.keepsWarm() - p.assignable()}
	if c.prefixes() {
		lack.Blocks = (lack.Addresses + limits.PrefixSize - 1) / limits.PrefixSize
	}
	return lack, true
}

// growsIn returns the subnet of a pool's next addresses: that of its interfaces while they have
// room, else that of a new interface. It is empty if there is none.
func (c *Case) growsIn(p *pool) string {
	own := c.subnetOfNode()
	subnets, known := c.candidates()
	if !known || p.roomOnENI {
		return own
	}
	best, most := "", -1
	for _, s := range subnets {
		if s.Available == nil {
			return own
		}
		if *s.Available > most {
			best, most = s.ID, *s.Available
		}
	}
	return best
}

// FreeBlocks returns how many aligned /28 blocks of a subnet contain no known address. EC2 keeps
// addresses of the first and the last.
func (c *Case) FreeBlocks(s evidence.Subnet) int {
	if !s.CIDR.Addr().Is4() || s.CIDR.Bits() > 28 {
		return 0
	}
	held := map[netip.Prefix]bool{}
	take := func(a netip.Addr) {
		if block, err := a.Prefix(28); err == nil && a.Is4() && s.CIDR.Contains(a) {
			held[block] = true
		}
	}
	blocks := 1 << (28 - s.CIDR.Bits())
	last := binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(s.CIDR.Masked().Addr().AsSlice())+uint32(blocks*limits.PrefixSize-1))
	take(s.CIDR.Addr())
	take(netip.AddrFrom4([4]byte(last)))
	for i := range c.R.Interfaces.Content {
		e := &c.R.Interfaces.Content[i]
		take(e.Primary)
		for _, a := range e.IPs {
			take(a)
		}
		for _, p := range e.Prefixes {
			take(p.Addr())
		}
	}
	return blocks - len(held)
}

// keepsWarm returns how many unused addresses a node keeps.
func (c *Case) keepsWarm() int {
	perENI := 9
	if t, ok := c.limits(); ok && t.IPv4PerENI != nil {
		perENI = *t.IPv4PerENI - 1
	}
	switch {
	case c.Settings.WarmIP > 0:
		return c.Settings.WarmIP
	case c.prefixes():
		return limits.PrefixSize * max(1, c.Settings.WarmPrefix)
	}
	return perENI * c.Settings.WarmENI
}

// or returns the first text that is not empty.
func or(texts ...string) string { return cmp.Or(texts...) }

// labelOf returns a label of one series of a metric.
func labelOf(series, name, label string) (string, bool) {
	if !strings.HasPrefix(series, name+"{") {
		return "", false
	}
	sample, err := promtext.ParseSeries(series)
	value, ok := sample.Labels[label]
	return value, ok && err == nil
}
