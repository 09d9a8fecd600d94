package maxpods

import (
	"cmp"
	"fmt"
	"slices"

	"cnictl/capacity/limits"
)

// computation is a Result in the making.
type computation struct {
	in    Input
	i     limits.Instance
	r     Result
	trunk trunkState
	pool  limits.Pool
}

// trunkState is what happens to the slot of a trunk ENI.
type trunkState uint8

const (
	noTrunk    trunkState = iota
	noSupport             // the type cannot have one
	attached              // the trunk exists
	reserved              // the trunk will be attached
	lostToNone            // a slot is reserved, but the controller refuses the type
	noSlot                // no slot is free for it
)

func (c *computation) term(name string, value int, format string, args ...any) {
	c.r.terms = append(c.r.terms, Term{name, value, fmt.Sprintf(format, args...)})
}

func (c *computation) note(format string, args ...any) {
	c.r.Notes = append(c.r.Notes, fmt.Sprintf(format, args...))
}

// facts looks up the type; the table takes precedence over Instance.
func (c *computation) facts() bool {
	if i, ok := c.in.Table.Lookup(c.in.InstanceType); ok {
		if c.i, c.r.Source = i, FromTable; c.in.Table.Read(i.Type) {
			c.r.Source = FromEC2
		}
	} else if c.in.Instance != nil {
		c.i, c.r.Source = *c.in.Instance, FromEC2
	} else {
		return false
	}
	c.i.VCPUs = cmp.Or(c.in.VCPUs, c.i.VCPUs)
	return true
}

func (c *computation) unknown() Result {
	c.r.Source, c.r.Verdict = FromDefault, UnknownType
	c.r.Suggestions = c.in.Table.Nearest(c.in.InstanceType, 3)
	c.r.Recommended = KubeletDefault
	c.r.KubeReservedMiB = KubeReservedMiB(c.judged())
	c.term("recommended", KubeletDefault, "type %q is not in the table: this is kubelet's default, without counting addresses", c.in.InstanceType)
	return c.r
}

// size computes what the pool can hold, and explains it.
func (c *computation) size() {
	c.trunk = c.trunkOf()
	can, why := c.prefixes()
	c.pool = c.i.Pool(limits.PoolInput{
		MaxENI: c.in.MaxENI, StatedENIs: c.in.StatedENIs, StatedSlots: c.in.StatedSlots,
		Trunk: c.trunk.takesSlot(), CustomNetworking: c.in.CustomNetworking, Prefixes: c.in.PrefixDelegation && can,
		UnmanagedENIs: c.in.UnmanagedENIs, ExcludedENIs: c.in.ExcludedENIs, PrimaryExcluded: c.in.PrimaryExcluded,
		LeftoverSlots: c.in.LeftoverSlots,
	})
	c.interfaces()
	c.addresses(why)
}

// interfaces explains the number of interfaces that serve pods.
func (c *computation) interfaces() {
	e := c.i.MaxENIs
	where := "interfaces of the network card"
	if all := c.i.TotalENIs(); all > e {
		where = fmt.Sprintf("interfaces of network card %d; the whole instance has %d", c.i.DefaultCard, all)
	}
	c.term("E", e, "%s", where)
	if c.in.MaxENI >= 1 && c.in.MaxENI < e {
		e = c.in.MaxENI
		c.term("MAX_ENI", e, "limit for the pool, including the primary interface")
	}
	if c.in.StatedENIs >= 1 && c.in.StatedENIs < e {
		c.term("stated-enis", c.in.StatedENIs, "EC2 refused to attach more")
	}
	c.minus("unmanaged", c.in.UnmanagedENIs, "interfaces managed by others")
	c.minus("excluded", c.in.ExcludedENIs, "interfaces in subnets tagged kubernetes.io/role/cni=0")
	c.trunkTerm()
	if c.in.CustomNetworking && !c.in.PrimaryExcluded {
		c.minus("primary", 1, "custom networking: the primary interface serves no pods")
	}
	why := "interfaces that serve pods"
	if c.pool.Always {
		why = "the primary interface always exists and serves pods"
	}
	c.r.Interfaces = c.pool.Interfaces
	c.term("U", c.r.Interfaces, "%s", why)
}

// minus records a term that is subtracted, unless it is 0.
func (c *computation) minus(name string, n int, why string) {
	if n > 0 {
		c.term(name, n, "%s", why)
	}
}

// takesSlot reports whether the trunk has an interface, or one is kept for it.
func (t trunkState) takesSlot() bool { return t == attached || t == reserved || t == lostToNone }

func (c *computation) trunkOf() trunkState {
	switch {
	case c.in.TrunkAttached:
		return attached
	case !c.in.PodENI:
		return noTrunk
	case c.i.TrunkingCompatible == limits.No:
		return noSupport
	case c.in.NoTrunkSlot:
		return noSlot
	case c.i.TrunkingCompatible == limits.Unknown:
		return lostToNone
	}
	return reserved
}

func (c *computation) trunkTerm() {
	switch c.trunk {
	case noTrunk:
	case attached:
		c.minus("trunk", 1, "the trunk interface carries no pod addresses of its own")
	case noSupport:
		c.term("trunk", 0, "the instance type does not support a trunk")
	case noSlot:
		c.term("trunk", 0, "no interface is kept for it")
		c.note("no interface is kept for a trunk: replace the node to get branch ENIs")
	case lostToNone:
		c.note("the VPC resource controller does not support %s: it attaches no trunk, but the slot stays reserved while ENABLE_POD_ENI is on", c.in.InstanceType)
		c.minus("trunk", 1, "reserved for a trunk that the VPC resource controller does not attach")
	case reserved:
		c.minus("trunk", 1, "reserved for the trunk interface")
	}
}

// addresses explains the number of addresses that the interfaces hold.
func (c *computation) addresses(noPrefixes string) {
	c.r.SlotsPerENI, c.r.PerSlot, c.r.PodIPs = c.pool.Slots, c.pool.PerSlot, c.pool.Addresses
	if c.in.IPv6 {
		c.ipv6(noPrefixes)
		return
	}
	c.term("L", c.i.IPv4PerENI, "IPv4 addresses per interface, including its primary one")
	if c.in.StatedSlots >= 1 && c.in.StatedSlots < c.i.IPv4PerENI-1 {
		c.term("stated-slots", c.in.StatedSlots, "EC2 refused more per interface")
	}
	c.term("S", c.r.SlotsPerENI, "slots per interface")
	c.perSlot(noPrefixes)
	c.minus("leftover", c.pool.Leftover, "slots holding addresses or prefixes of the other mode; replace the node to free them")
	c.term("ip", c.r.PodIPs, "addresses for pods")
}

// prefixes reports whether slots can hold prefixes, and if not, why.
func (c *computation) prefixes() (bool, string) {
	v := c.in.CNI
	switch {
	case !c.i.PrefixDelegation():
		return false, "the instance type is neither Nitro nor bare metal"
	case v == Version{}:
		return true, ""
	case v.Major < 1 || v.Major == 1 && v.Minor < 9:
		return false, "prefixes need CNI 1.9"
	case c.i.BareMetal && v.Major == 1 && v.Minor < 11:
		return false, "prefixes on bare metal need CNI 1.11"
	}
	return true, ""
}

func (c *computation) perSlot(noPrefixes string) {
	switch {
	case !c.in.PrefixDelegation:
	case noPrefixes != "":
		c.term("per slot", 1, "secondary addresses: %s", noPrefixes)
		c.note("prefix delegation has no effect: %s", noPrefixes)
	default:
		c.term("per slot", c.r.PerSlot, "each slot holds a /28")
	}
}

// ipv6 counts no addresses: a node has more than pods can use. The other figures are those of
// an IPv4 node with prefixes, from which EKS takes its recommendation.
func (c *computation) ipv6(noPrefixes string) {
	c.r.SlotsPerENI = max(0, c.i.IPv4PerENI-1)
	if noPrefixes != "" {
		c.r.PodIPs, c.r.PerSlot = 0, 1
		c.term("ip", 0, "IPv6 needs prefixes: %s", noPrefixes)
		c.note("the daemon does not start in IPv6 mode: %s", noPrefixes)
		return
	}
	c.r.PerSlot = limits.PrefixSize
	c.r.PodIPs = Unlimited
	where := "the primary interface"
	if c.in.PrimaryExcluded {
		where = "a separate interface, since the primary is excluded"
	}
	c.term("ip", Unlimited, "one /80, 2^48 addresses, on %s", where)
}

// branches counts the pods with their own interface.
func (c *computation) branches() {
	switch {
	case c.trunk != attached && c.trunk != reserved:
	case c.in.BranchENIs != nil:
		c.r.BranchENIs = max(0, *c.in.BranchENIs)
		c.term("br", c.r.BranchENIs, "branch ENIs that the node advertises")
	default:
		c.r.BranchENIs = c.i.BranchENIs
		c.term("br", c.r.BranchENIs, "branch ENIs of the instance type")
	}
	if c.r.PodIPs == 0 && c.r.BranchENIs > 0 {
		c.note("no interface is left for ordinary pods: only pods with a branch ENI get an address")
	}
}

func (c *computation) host() {
	c.r.HostPods = limits.HostPods
	why := "host-network pods, by convention aws-node and kube-proxy"
	if c.in.HostPods != nil {
		c.r.HostPods = max(0, *c.in.HostPods)
		why = "host-network pods, counted"
	}
	c.term("host", c.r.HostPods, "%s", why)
}

// capacity adds up and applies the cap.
func (c *computation) capacity() {
	r := &c.r
	r.IPCapacity = sum(r.PodIPs, r.HostPods)
	r.TotalCapacity = sum(r.IPCapacity, r.BranchENIs)
	c.term("ipCapacity", r.IPCapacity, "ip + host: pods that can run without a branch ENI")
	c.term("totalCapacity", r.TotalCapacity, "ip + br + host")
	if c.i.VCPUs == 0 {
		c.note("vCPUs unknown, and so which cap of EKS applies, 110 or 250")
		return
	}
	most := Cap(c.i.VCPUs)
	r.Recommended = min(r.TotalCapacity, most)
	if c.in.IPv6 && r.PodIPs == Unlimited {
		// A policy figure: EKS uses the IPv4 prefix figure, which matters only for the
		// smallest types.
		r.Recommended = min(c.i.MaxENIs*r.SlotsPerENI*limits.PrefixSize+limits.HostPods, most)
	}
	c.term("cap", most, "the EKS convention for %d vCPUs", c.i.VCPUs)
	c.term("recommended", r.Recommended, "the lower of capacity and cap")
}

// sum adds, saturating at Unlimited.
func sum(a, b int) int {
	if a >= Unlimited-b {
		return Unlimited
	}
	return a + b
}

// cards counts what the pools of further cards hold.
func (c *computation) cards() {
	if !c.in.MultiNIC {
		return
	}
	for _, card := range c.i.Cards {
		if card.Index == c.i.DefaultCard || slices.Contains(c.in.EFAOnlyCards, card.Index) {
			continue
		}
		spare, what := c.r.PerSlot, "spare addresses"
		if c.r.PodIPs == Unlimited {
			spare, what = Unlimited, "a /80"
		}
		c.r.Cards = append(c.r.Cards, CardCost{Card: card.Index, Interfaces: 1, Addresses: spare})
		c.term(fmt.Sprintf("card %d", card.Index), spare, "%s for pods with several interfaces, in addition to the interface's own; they add no pods", what)
	}
}

// judged is the max-pods under judgement.
func (c *computation) judged() int {
	if c.in.MaxPods > 0 {
		return c.in.MaxPods
	}
	return c.r.Recommended
}

func (c *computation) judge() {
	r := &c.r
	if judged := c.judged(); judged > 0 {
		r.KubeReservedMiB = KubeReservedMiB(judged)
		if c.i.MemoryMiB > 0 && r.KubeReservedMiB*4 > c.i.MemoryMiB {
			c.note("%d of %d MiB are reserved for kubelet at %d pods", r.KubeReservedMiB, c.i.MemoryMiB, judged)
		}
	}
	if r.MaxPods <= 0 {
		return
	}
	c.term("max-pods", r.MaxPods, "the node's capacity.pods")
	if r.TotalCapacity < Unlimited {
		r.Short = max(0, r.MaxPods-r.TotalCapacity)
		r.Stranded = max(0, r.TotalCapacity-r.MaxPods)
	}
	// The pods of max-pods that are in the host's network need no address.
	withAddress := r.MaxPods - r.HostPods
	switch {
	case withAddress > sum(r.PodIPs, r.BranchENIs):
		r.Verdict = Over
		c.note("%s can be scheduled without an address for them", count(r.Short, "pod", "pods"))
	case r.TotalCapacity < Unlimited && r.MaxPods < min(r.TotalCapacity, Cap(c.i.VCPUs)):
		r.Verdict = Under
		c.note("%s can never be used; the daemon stops growing the pool at max-pods", count(r.Stranded, "address", "addresses"))
	default:
		r.Verdict = OK
	}
	if r.BranchENIs == 0 {
		return // the verdict says it all
	}
	branchPods := 0
	if c.in.BranchPods != nil {
		branchPods = max(0, *c.in.BranchPods)
	}
	if r.Exposed = max(0, withAddress-branchPods-r.PodIPs); r.Exposed > 0 {
		c.note("only %d of the pods can use an ordinary address; the others need a branch ENI", r.PodIPs)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
