package limits

// PrefixSize is the number of addresses of a /28, and PrefixSize6 that of a /80.
const (
	PrefixSize  = 16
	PrefixSize6 = 1 << 48
)

// HostPods is the number of pods in the host's network that every published figure of max-pods
// counts, aws-node and kube-proxy (amazon-vpc-cni-k8s: misc/eni-max-pods.txt).
const HostPods = 2

// PoolInput is what the size of a network card's pool depends on besides the instance type.
type PoolInput struct {
	MaxENI           int  // MAX_ENI; not set if below 1
	StatedENIs       int  // what EC2 attaches to the card, having refused more; not set if below 1
	StatedSlots      int  // secondary IPs or prefixes that EC2 puts on an ENI, having refused more; not set if below 1
	Trunk            bool // a trunk ENI is attached, or an interface is reserved for it
	CustomNetworking bool // the primary ENI gives no addresses to pods
	Prefixes         bool // slots hold /28 prefixes, see [Instance.PrefixDelegation]
	IPv6             bool // an ENI holds one /80

	UnmanagedENIs   int  // that the daemon does not manage: they take interfaces
	ExcludedENIs    int  // in subnets excluded from pods; the primary too
	PrimaryExcluded bool // the primary is one of them
	LeftoverSlots   int  // slots that hold an address or prefix of the other mode
}

// Pool is the most that the pool of a network card can hold. Every figure about capacity comes
// from here: max-pods, the planner, the doctor and the bars.
type Pool struct {
	Limit      int  // ENIs that may be attached, of any use
	Interfaces int  // of these, those that may give addresses to pods
	Always     bool // Interfaces is 1 only because the primary always exists and serves pods
	Slots      int  // of an interface: secondary IPs or prefixes
	PerSlot    int  // addresses of a slot
	Leftover   int  // slots lost to the other mode
	Addresses  int
}

// Pool returns the most that the default network card's pool can hold.
func (i Instance) Pool(in PoolInput) Pool { return i.pool(i.MaxENIs, true, in) }

// CardPool is Pool for any network card. The trunk and the primary ENI are on the default one.
func (i Instance) CardPool(card int, in PoolInput) Pool {
	if card == i.DefaultCard {
		return i.Pool(in)
	}
	enis := 0
	for _, c := range i.Cards {
		if c.Index == card {
			enis = c.MaxENIs
		}
	}
	return i.pool(enis, false, in)
}

func (i Instance) pool(enis int, first bool, in PoolInput) Pool {
	p := Pool{Limit: atMost(atMost(enis, in.MaxENI), in.StatedENIs), Slots: max(0, i.IPv4PerENI-1), PerSlot: 1}
	p.Interfaces = p.Limit - max(0, in.UnmanagedENIs) - max(0, in.ExcludedENIs)
	if first {
		if in.Trunk {
			p.Interfaces--
		}
		switch {
		case in.PrimaryExcluded:
		case in.CustomNetworking:
			p.Interfaces--
		default:
			// Limits and reservations rule out further interfaces; the primary always exists.
			p.Always = p.Interfaces < 1
			p.Interfaces = max(1, p.Interfaces)
		}
	}
	p.Interfaces = max(0, p.Interfaces)
	switch p.Slots = atMost(p.Slots, in.StatedSlots); {
	case in.IPv6:
		p.Slots, p.PerSlot = 1, PrefixSize6
	case in.Prefixes:
		p.PerSlot = PrefixSize
	}
	slots := p.Interfaces * p.Slots
	p.Leftover = min(slots, max(0, in.LeftoverSlots))
	p.Addresses = (slots - p.Leftover) * p.PerSlot
	return p
}

// atMost is the lower of a number and a limit, which below 1 is none.
func atMost(n, limit int) int {
	if limit < 1 {
		return n
	}
	return min(n, limit)
}
