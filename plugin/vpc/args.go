package vpc

import (
	"errors"
	"strconv"
	"strings"

	"cnictl/plugin/skel"
)

// podArgs holds what CNI_ARGS says about the pod.
type podArgs struct {
	podName, podNamespace, infraContainerID, podUID string
}

// argKeys are the keys that parseArgs knows.
var argKeys = [...]string{"K8S_POD_NAME", "K8S_POD_NAMESPACE", "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_UID", "IgnoreUnknown"}

// parseArgs parses CNI_ARGS: pairs "K=V" joined by semicolons. An unknown key is an error
// unless IgnoreUnknown is set. The error texts are those of containernetworking/cni
// (types.LoadArgs).
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
			return out, errors.New("ARGS: invalid pair " + strconv.Quote(pair))
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
				return out, errors.New("ARGS: error parsing value of pair " + strconv.Quote(pair) +
					": boolean unmarshal error: invalid input " + strings.ToLower(value))
			}
			ignoreUnknown = yes
		default:
			unknown = append(unknown, pair)
		}
	}
	if len(unknown) > 0 && !ignoreUnknown {
		return out, errors.New("ARGS: unknown args " + skel.QuoteList(unknown))
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
