package ipamd

import (
	"context"

	"cnictl/daemon/api/netnames"
)

// hostLinks lists the links of the host by name.
type hostLinks func(context.Context) (map[string]int, error)

// linkedPods are the pods with a link on the host, by the hash in its name.
type linkedPods map[string]bool

// pods lists the pods that have a link, with any prefix: branch ENIs use another prefix than
// the rest, and the setting can change while a pod runs.
func (l hostLinks) pods(ctx context.Context) (linkedPods, error) {
	names, err := l(ctx)
	if err != nil {
		return nil, err
	}
	out, hash := linkedPods{}, len(netnames.Hash("", "", 0))
	for name := range names {
		if prefix := len(name) - hash; prefix >= 0 && prefix <= netnames.MaxVethPrefix {
			out[name[prefix:]] = true
		}
	}
	return out, nil
}

func (l linkedPods) has(pod podName) bool { return l[netnames.Hash(pod.namespace, pod.name, 0)] }
