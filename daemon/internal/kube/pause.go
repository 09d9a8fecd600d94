package kube

import (
	"time"

	"cnictl/daemon/kubeclient"
)

// pauses are how long to wait before a request is made again.
type pauses struct {
	kubeclient.Backoff

	// After blind and reread, and up to half of it more, a pod that is waited for is
	// requested again. Without an open watch, which is blind, nothing else shows a change;
	// with one only what it cannot show, such as a pod of another node, or what a dead
	// connection hides.
	blind, reread time.Duration
}

func defaultPauses() pauses {
	return pauses{
		Backoff: kubeclient.Backoff{First: time.Second, Most: 30 * time.Second},
		blind:   time.Second, reread: 5 * time.Second,
	}
}
