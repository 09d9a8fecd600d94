package show

import (
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
)

// Pods formats a number of pods or addresses in a max-pods calculation.
func Pods(n *int) string {
	if n != nil && *n == introspect.MaxPodsUnlimited {
		return "unlimited"
	}
	return Int(n)
}

// Term explains a term of a max-pods calculation; "" for an unknown one, perhaps from a later
// daemon.
func Term(name string) string {
	switch name {
	case "E":
		return "ENIs the network card supports"
	case "MAX_ENI":
		return "ENIs the pool may use"
	case "stated-enis":
		return "ENIs that EC2 attaches, having refused more"
	case "unmanaged":
		return "minus ENIs managed by others"
	case "excluded":
		return "minus ENIs in excluded subnets"
	case "trunk":
		return "minus the trunk ENI"
	case "primary":
		return "minus the primary ENI"
	case "U":
		return "ENIs for pods"
	case "L":
		return "IPv4 addresses per ENI"
	case "stated-slots":
		return "slots per ENI that EC2 fills, having refused more"
	case "S":
		return "slots per ENI, without its own address"
	case "per slot":
		return "addresses per slot"
	case "leftover":
		return "minus slots held by the other mode"
	case "ip":
		return "addresses for pods"
	case "br":
		return "branch ENIs"
	case "host":
		return "host network pods"
	case "ipCapacity":
		return "pods without branch ENIs"
	case "totalCapacity":
		return "pods in total"
	case "cap":
		return "EKS recommended maximum"
	case "recommended":
		return "the lower of the two"
	case "max-pods":
		return "kubelet setting"
	}
	if card, ok := strings.CutPrefix(name, "card "); ok {
		if _, err := strconv.Atoi(card); err == nil {
			return "addresses for additional pod interfaces"
		}
	}
	return ""
}
