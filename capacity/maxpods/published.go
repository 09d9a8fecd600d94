package maxpods

import "cnictl/capacity/limits"

// Base is the published formula: every interface's addresses but the primary, and
// two for pods in the host's network (aws-node and kube-proxy).
func Base(enis, ipv4PerENI int) int { return enis*(ipv4PerENI-1) + 2 }

// FileRule is the value that eni-max-pods.txt gives for a type, which the daemon
// uses while it has no API server. It is false for a type that the published file
// does not list; the usual fallback is then [KubeletDefault].
func FileRule(instanceType string) (int, bool) {
	i, ok := limits.Lookup(instanceType)
	if !ok || i.PublishedMaxENIs == 0 {
		return 0, false
	}
	return Base(i.PublishedMaxENIs, i.IPv4PerENI), true
}

// KubeletDefault is kubelet's max-pods when nothing sets it.
const KubeletDefault = 110

// Cap is the convention of EKS for the most pods of a node: 250 above 30 vCPUs, 110
// otherwise. Where the vCPUs are not known (0) it is the lower of the two.
func Cap(vcpus int) int {
	if vcpus > 30 {
		return 250
	}
	return 110
}

// KubeReservedMiB is the memory that EKS AMIs keep from pods for that max-pods.
func KubeReservedMiB(maxPods int) int { return 11*maxPods + 255 }

// KubeReservedMilliCPU is what EKS AMIs keep from pods: 6 % of the first core, 1 % of the second,
// 0.5 % of the third and fourth, 0.25 % of the others (nodeadm's
// internal/kubelet/config.go).
func KubeReservedMilliCPU(vcpus int) int {
	quarters := 0 // of a permille of a core
	for n := range vcpus {
		switch {
		case n == 0:
			quarters += 240
		case n == 1:
			quarters += 40
		case n < 4:
			quarters += 20
		default:
			quarters += 10
		}
	}
	return quarters / 4
}

// Calculator is the input of max-pods-calculator.sh.
type Calculator struct {
	Instance         limits.Instance
	CNIMajor         int
	CNIMinor         int
	PrefixDelegation bool
	CustomNetworking bool
	MaxENI           *int // --cni-max-eni; nil: not given. 0 is taken as 0, unlike the daemon does
}

// Result returns what the script prints with --show-max-allowed and without. It
// ignores prefixes on bare metal, whose hypervisor EC2 leaves empty, and on CNI
// versions before 1.9.
func (c Calculator) Result() (most, recommended int) {
	enis := publishedENIs(c.Instance)
	if c.MaxENI != nil {
		enis = min(enis, *c.MaxENI)
	}
	if c.CustomNetworking {
		enis--
	}
	slots := c.Instance.IPv4PerENI - 1
	if c.PrefixDelegation && c.prefixes() {
		slots *= prefixSize
	}
	most = enis*slots + 2
	return most, min(most, Cap(c.Instance.VCPUs))
}

// prefixes reports whether the script takes prefix delegation into account.
func (c Calculator) prefixes() bool {
	return (c.CNIMajor > 1 || c.CNIMajor == 1 && c.CNIMinor > 8) && c.Instance.Hypervisor == "nitro"
}

// Nodeadm is the standard value of AL2023 nodes: no cap, no prefixes.
func Nodeadm(i limits.Instance) int { return Base(publishedENIs(i), i.IPv4PerENI) }

// Karpenter is Karpenter's ENI-limited density: reserved are RESERVED_ENIS, efaOnly
// the efa-only interfaces on the first card, podsPerCore 0 = not set. When no
// interface is left it says 0, where others say 2.
func Karpenter(i limits.Instance, reserved, efaOnly, podsPerCore int) int {
	pods := 0
	if enis := publishedENIs(i) - reserved - efaOnly; enis > 0 {
		pods = Base(enis, i.IPv4PerENI)
	}
	if podsPerCore > 0 {
		pods = min(pods, podsPerCore*i.VCPUs)
	}
	return pods
}

// publishedENIs is the default card's limit as the published rules know it; types
// that no published file lists have only ours.
func publishedENIs(i limits.Instance) int {
	if i.PublishedMaxENIs > 0 {
		return i.PublishedMaxENIs
	}
	return i.MaxENIs
}
