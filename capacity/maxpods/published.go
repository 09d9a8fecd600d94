package maxpods

import "cnictl/capacity/limits"

// Base is the published formula: all addresses of each interface but the primary one, and
// two for pods in the host's network (aws-node and kube-proxy).
func Base(enis, ipv4PerENI int) int { return enis*(ipv4PerENI-1) + limits.HostPods }

// FileRule returns the value for a type in eni-max-pods.txt, which the daemon uses while
// it cannot reach the API server. It returns false for types that the published file does
// not list; the usual fallback is then [KubeletDefault].
func FileRule(instanceType string) (int, bool) {
	i, ok := limits.Lookup(instanceType)
	if !ok || i.PublishedMaxENIs == 0 {
		return 0, false
	}
	return Base(i.PublishedMaxENIs, i.IPv4PerENI), true
}

// KubeletDefault is kubelet's max-pods if nothing sets it.
const KubeletDefault = 110

// Cap is EKS's convention for the maximum number of pods on a node: 250 above 30 vCPUs,
// 110 otherwise, also if the number of vCPUs is unknown (0).
func Cap(vcpus int) int {
	if vcpus > 30 {
		return 250
	}
	return 110
}

// KubeReservedMiB is the memory that EKS AMIs reserve for that max-pods.
func KubeReservedMiB(maxPods int) int { return 11*maxPods + 255 }

// KubeReservedMilliCPU is the CPU that EKS AMIs reserve: 6 % of the first core, 1 % of the
// second, 0.5 % of the third and fourth, 0.25 % of the others (nodeadm's
// internal/kubelet/config.go).
func KubeReservedMilliCPU(vcpus int) int {
	quarters := 0 // quarters of a millicore
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
	MaxENI           *int // --cni-max-eni; nil if not given. 0 means none, unlike in the daemon
}

// Result returns what the script prints with and without --show-max-allowed. The script
// ignores prefixes on bare metal, for which EC2 reports no hypervisor, and on CNI versions
// before 1.9.
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
		slots *= limits.PrefixSize
	}
	most = enis*slots + limits.HostPods
	return most, min(most, Cap(c.Instance.VCPUs))
}

// prefixes reports whether the script takes prefix delegation into account.
func (c Calculator) prefixes() bool {
	return (c.CNIMajor > 1 || c.CNIMajor == 1 && c.CNIMinor > 8) && c.Instance.Hypervisor == "nitro"
}

// Nodeadm is the default on AL2023 nodes: no cap, no prefixes.
func Nodeadm(i limits.Instance) int { return Base(publishedENIs(i), i.IPv4PerENI) }

// Karpenter is Karpenter's ENI-limited density. reserved is RESERVED_ENIS, efaOnly the
// number of efa-only interfaces on the first card, podsPerCore 0 if not set. If no
// interface is left, it is 0, where the other rules give 2.
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

// publishedENIs is the default card's limit as the published rules know it, or ours for
// types that no published file lists.
func publishedENIs(i limits.Instance) int {
	if i.PublishedMaxENIs > 0 {
		return i.PublishedMaxENIs
	}
	return i.MaxENIs
}
