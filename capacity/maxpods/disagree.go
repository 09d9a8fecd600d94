package maxpods

import (
	"fmt"
	"strings"

	"cnictl/capacity/limits"
)

// Disagreements lists where published sources differ about a type. Each sentence names the
// sources, their figures and the reason. The comparison was made for the capacity
// reference; whatever follows from the facts of the type is computed.
func Disagreements(i limits.Instance) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if i.PublishedMaxENIs == 0 {
		say("coverage: no published max-pods file lists %s, so nodeadm asks EC2 and Bottlerocket uses kubelet's 110; the limits here are those of the VPC resource controller", i.Type)
	} else if notInNodeadm(i.Type) {
		say("coverage: the VPC CNI lists %s by hand, nodeadm does not: it asks EC2, and uses 110 where that fails", i.Type)
	}
	if i.PublishedMaxENIs > 0 && i.PublishedMaxENIs != i.MaxENIs {
		say("interfaces: the VPC CNI, nodeadm and Karpenter take %d for the default network card; a later card layout has %d", i.PublishedMaxENIs, i.MaxENIs)
	}
	if all := i.TotalENIs(); all > i.MaxENIs {
		by := "EC2 counts"
		if i.TrunkingCompatible != limits.Unknown {
			by = "EC2 and the VPC resource controller count"
		}
		say("interfaces: %s %d over all network cards, which would make %d pods; pools and max-pods are those of the default card, which has %d", by, all, Base(all, i.IPv4PerENI), i.MaxENIs)
	}
	if i.BareMetal {
		say("prefix delegation: EC2 reports no hypervisor for bare metal, so max-pods-calculator.sh ignores prefixes (%d); the daemon uses them (%d)", Base(publishedENIs(i), i.IPv4PerENI), i.MaxENIs*(i.IPv4PerENI-1)*limits.PrefixSize+limits.HostPods)
	}
	if i.TrunkingCompatible == limits.Unknown {
		say("trunk: the VPC resource controller does not list %s and attaches no trunk; the daemon considers it compatible and reserves a slot while ENABLE_POD_ENI is on", i.Type)
	} else if i.Type == "i4i.large" {
		say("trunk: older tables of the VPC resource controller have no trunk for i4i.large, newer ones 9 branch ENIs")
	}
	if all := Base(publishedENIs(i), i.IPv4PerENI); i.VCPUs > 0 && all > Cap(i.VCPUs) {
		say("cap: eni-max-pods.txt, nodeadm and Karpenter give %d; max-pods-calculator.sh and managed node groups stop at %d for %d vCPUs, Auto Mode at %d", all, Cap(i.VCPUs), i.VCPUs, KubeletDefault)
	}
	return out
}

// notInNodeadm reports whether the VPC CNI lists a type by hand or the type is retired.
func notInNodeadm(instanceType string) bool {
	return instanceType == "c7i.32xlarge" || strings.HasPrefix(instanceType, "f1.") || strings.HasPrefix(instanceType, "p3.")
}
