package cluster

// Is reports whether this is the pod that a runtime knows by uid, which may be "" if the
// runtime has none. The UID matters because a StatefulSet reuses pod names.
func (p Pod) Is(uid string) bool { return uid == "" || p.UID == uid || p.Mirror }

// Expects reports whether this daemon's pool must give the pod an address sooner or later:
// the pod is not on the host network, has not ended, has no address yet, and is not a
// branch pod (without podENI, that is ENABLE_POD_ENI, branch pods are like any other).
func (p Pod) Expects(podENI bool) bool {
	return !p.HostNetwork && !p.Ended && p.IPs == 0 && !(podENI && p.BranchENI)
}
