package vpc

import (
	"fmt"
	"strings"
)

// podArgs is what CNI_ARGS says of the pod.
type podArgs struct {
	podName, podNamespace, infraContainerID, podUID string
}

// parseArgs reads CNI_ARGS: pairs "K=V" joined by semicolons. A key that is not
// known is an error unless IgnoreUnknown is set. The texts are those of
// containernetworking/cni (types.LoadArgs).
func parseArgs(args string) (podArgs, error) {
	var out podArgs
	if args == "" {
		return out, nil
	}
	var unknown []string
	ignoreUnknown := false
	for pair := range strings.SplitSeq(args, ";") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.Contains(value, "=") {
			return out, fmt.Errorf("ARGS: invalid pair %q", pair)
		}
		switch key {
		case "K8S_POD_NAME":
			out.podName = value
		case "K8S_POD_NAMESPACE":
			out.podNamespace = value
		case "K8S_POD_INFRA_CONTAINER_ID":
			out.infraContainerID = value
		case "K8S_POD_UID":
			out.podUID = value
		case "IgnoreUnknown":
			yes, ok := parseBool(value)
			if !ok {
				return out, fmt.Errorf("ARGS: error parsing value of pair %q: boolean unmarshal error: invalid input %s",
					pair, strings.ToLower(value))
			}
			ignoreUnknown = yes
		default:
			unknown = append(unknown, pair)
		}
	}
	if len(unknown) > 0 && !ignoreUnknown {
		return out, fmt.Errorf("ARGS: unknown args %q", unknown)
	}
	return out, nil
}

func parseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "1", "true":
		return true, true
	case "0", "false":
		return false, true
	}
	return false, false
}
