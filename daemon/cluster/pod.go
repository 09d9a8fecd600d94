package cluster

import "slices"

// Is reports whether this is the pod that a runtime knows by uid, which may be "" if the
// runtime has none. The UID matters because a StatefulSet reuses pod names.
func (p Pod) Is(uid string) bool { return uid == "" || p.UID == uid || p.Mirror }

// Expects reports whether this daemon's pool must give the pod an address sooner or later:
// the pod is not on the host network, has not ended, has no address yet, and is not a
// branch pod (without podENI, that is ENABLE_POD_ENI, branch pods are like any other).
func (p Pod) Expects(podENI bool) bool {
	return !p.HostNetwork && !p.Ended && p.IPs == 0 && !(podENI && p.BranchENI)
}

// OnBranch reports whether the pod may be using a branch ENI. This includes a pod that is
// being deleted, until its DEL comes: it may keep serving for long.
func (p Pod) OnBranch() bool {
	return p.BranchENI && p.PodENI != "" && !p.Finished && !p.HostNetwork
}

// AwaitsBranch reports whether the pod asks for a branch ENI and none was announced yet.
func (p Pod) AwaitsBranch() bool {
	return p.BranchENI && p.PodENI == "" && !p.Ended && !p.HostNetwork && p.IPs == 0
}

// HoldsLinkOf reports whether the pod has, or may have, a host link with one of the hashes in
// its name, which are those of a pod of another name.
func (p Pod) HoldsLinkOf(namespace, name string, hashes []string) bool {
	return p.MayHoldLink() && slices.Contains(hashes, p.LinkHash) && (p.Namespace != namespace || p.Name != name)
}

// MayHoldLink reports whether the pod may have a host link: it has a network of its own, or a
// branch ENI from which one is made.
func (p Pod) MayHoldLink() bool {
	return !p.HostNetwork && !p.Finished && (p.IPs > 0 || p.OnBranch())
}
