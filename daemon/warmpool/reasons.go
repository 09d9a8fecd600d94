package warmpool

// Reason says why an action is planned. Its text is stable: it is a metric label
// and a log value.
type Reason string

// Reasons to grow.
const (
	WaitingPods  Reason = "waiting-pods"
	ExpectedPods Reason = "expected-pods"
	WarmENI      Reason = "warm-eni-target"
	WarmIP       Reason = "warm-ip-target"
	MinimumIP    Reason = "minimum-ip-target"
	WarmPrefix   Reason = "warm-prefix-target"
	PoolEmpty    Reason = "pool-empty"
	CardPool     Reason = "card-pool"
	IPv6Prefix   Reason = "ipv6-prefix"
)

// Reasons to release addresses and ENIs.
const (
	SurplusIPs      Reason = "surplus-ips"
	SurplusPrefixes Reason = "surplus-prefixes"
	SurplusENI      Reason = "surplus-eni"
	ENIExcluded     Reason = "eni-excluded"
	ModeChanged     Reason = "mode-changed"
)

// Reasons to wait.
const (
	SubnetExhausted  Reason = "subnet-exhausted"
	SubnetFragmented Reason = "subnet-fragmented"
	ENIBackedOff     Reason = "eni-backed-off"
	AttachBackedOff  Reason = "attach-backed-off"
	ReleaseBackedOff Reason = "release-backed-off"
	ScaleDownSpacing Reason = "scale-down-spacing"
	ENITooYoung      Reason = "eni-too-young"
	AddressesCooling Reason = "addresses-cooling"

	ENILimitStated     Reason = "eni-limit-stated"
	AddressLimitStated Reason = "address-limit-stated"
)

// reasons lists every reason with its title, in the order of the constants.
var reasons = []struct {
	reason Reason
	title  string
}{
	{WaitingPods, "pods wait for an address"},
	{ExpectedPods, "pods that need an address were scheduled to the node"},
	{WarmENI, "the pool is below WARM_ENI_TARGET"},
	{WarmIP, "the pool is below WARM_IP_TARGET"},
	{MinimumIP, "the pool is below MINIMUM_IP_TARGET"},
	{WarmPrefix, "the pool is below WARM_PREFIX_TARGET"},
	{PoolEmpty, "no address is free"},
	{CardPool, "the pool of each additional network card keeps one spare address"},
	{IPv6Prefix, "in an IPv6 cluster each network interface for pods holds one /80"},
	{SurplusIPs, "the pool is above its targets"},
	{SurplusPrefixes, "the pool has more free prefixes than its targets"},
	{SurplusENI, "the network interface is empty and the targets are met without it"},
	{ENIExcluded, "the network interface's subnet is excluded from pods"},
	{ModeChanged, "left over from the other mode (secondary IP or prefix)"},
	{SubnetExhausted, "the subnet has no free addresses"},
	{SubnetFragmented, "the subnet has no free aligned block for a prefix"},
	{ENIBackedOff, "the last request for this network interface failed"},
	{AttachBackedOff, "the last network interface could not be created or attached"},
	{ReleaseBackedOff, "the last release failed"},
	{ScaleDownSpacing, "the pool shrank a moment ago"},
	{ENITooYoung, "the network interface is too young to be detached"},
	{AddressesCooling, "addresses are cooling down after their last pod"},
	{ENILimitStated, "EC2 refused another network interface, although the instance type takes more; one more is tried once an hour"},
	{AddressLimitStated, "EC2 refused more addresses on a network interface, although the instance type takes more; one more is tried once an hour"},
}

// Title is the one-line meaning of a reason, "" for an unknown one.
func (r Reason) Title() string {
	for _, known := range reasons {
		if known.reason == r {
			return known.title
		}
	}
	return ""
}

// Reasons lists every reason.
func Reasons() []Reason {
	all := make([]Reason, 0, len(reasons))
	for _, known := range reasons {
		all = append(all, known.reason)
	}
	return all
}
