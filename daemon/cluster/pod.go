package cluster

// Expects reports whether this daemon's pool must give the pod an address sooner or
// later: it is the node's, still without a network, and not a branch pod (those count
// only with podENI, ENABLE_POD_ENI; without it they are pods like others).
func (p Pod) Expects(podENI bool) bool {
	return !p.HostNetwork && !p.Ended && p.IPs == 0 && !(podENI && p.BranchENI)
}
