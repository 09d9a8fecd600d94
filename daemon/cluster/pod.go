package cluster

// Is reports whether this is the pod that a runtime calls by a UID, which may be "" where
// it has none. A pod of a StatefulSet has the name of the one before it.
func (p Pod) Is(uid string) bool { return uid == "" || p.UID == uid || p.Mirror }

// Expects reports whether this daemon's pool must give the pod an address sooner or
// later: it is the node's, still without a network, and not a branch pod (those count
// only with podENI, ENABLE_POD_ENI; without it they are pods like others).
func (p Pod) Expects(podENI bool) bool {
	return !p.HostNetwork && !p.Ended && p.IPs == 0 && !(podENI && p.BranchENI)
}
