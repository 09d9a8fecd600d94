package kube

import (
	"time"

	"cnictl/daemon/kubeclient"
)

// pauses are the waits before a request is repeated.
type pauses struct {
	kubeclient.Backoff

	// WaitPod requests the pod again after blind or reread, plus up to half of it. blind is
	// for when no watch is open and nothing else shows a change. reread is for an open watch,
	// which misses pods of other nodes and changes hidden by a dead connection.
	blind, reread time.Duration
}

func defaultPauses() pauses {
	return pauses{
		Backoff: kubeclient.Backoff{First: time.Second, Max: 30 * time.Second},
		blind:   time.Second, reread: 5 * time.Second,
	}
}
