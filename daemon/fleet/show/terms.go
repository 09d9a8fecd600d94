package show

import (
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
)

// Pods prints a number of pods or addresses of the arithmetic of max-pods.
func Pods(n *int) string {
	if n != nil && *n == introspect.MaxPodsUnlimited {
		return "unlimited"
	}
	return Int(n)
}

// Term says a term of the arithmetic of max-pods, "" for one that a later daemon may
// have.
func Term(name string) string {
	switch name {
	case "E":
		return "interfaces the network card can have"
	case "MAX_ENI":
		return "interfaces the pool may use"
	case "unmanaged":
		return "less interfaces that others manage"
	case "excluded":
		return "less interfaces in excluded subnets"
	case "trunk":
		return "less the trunk interface"
	case "primary":
		return "less the primary interface"
	case "U":
		return "interfaces that serve pods"
	case "L":
		return "IPv4 addresses per interface"
	case "S":
		return "slots per interface, beside its own address"
	case "per slot":
		return "addresses per slot"
	case "leftover":
		return "less slots that the other mode holds"
	case "ip":
		return "addresses for pods"
	case "br":
		return "branch ENIs"
	case "host":
		return "pods in the host's network"
	case "ipCapacity":
		return "pods without branch ENIs"
	case "totalCapacity":
		return "pods in all"
	case "cap":
		return "most that EKS advises"
	case "recommended":
		return "the lower of both"
	case "max-pods":
		return "what kubelet was told"
	}
	if card, ok := strings.CutPrefix(name, "card "); ok {
		if _, err := strconv.Atoi(card); err == nil {
			return "spare addresses for further interfaces of pods"
		}
	}
	return ""
}
