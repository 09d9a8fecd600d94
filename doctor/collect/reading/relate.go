package reading

import (
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/doctor/evidence"
)

// Relate names what links belong to, once all sources are there: interfaces by MAC address, host
// ends of veth pairs by the pods that their names derive from. Routes to such a link name the pod
// instead.
func Relate(r *evidence.Reading) {
	if !r.Links.OK() {
		return
	}
	enis := map[string]string{}
	for _, i := range r.IMDS.Content.ENIs {
		enis[i.MAC] = i.ID
	}
	pods := podsByHash(r)
	byLink := map[string]evidence.Pod{}
	for i := range r.Links.Content {
		l := &r.Links.Content[i]
		if l.ENI == "" && l.Kind != "vlan" {
			l.ENI = enis[strings.ToLower(l.MAC)]
		}
		if l.Pod == "" && l.Kind == "veth" {
			l.Pod = pods[podHash(l.Name)]
		}
		if l.Pod != "" {
			byLink[l.Name] = l.Pod
		}
	}
	for i := range r.Routes.Content {
		if route := &r.Routes.Content[i]; byLink[route.Dev] != "" {
			route.Pod, route.Dev = byLink[route.Dev], ""
		}
	}
}

// IsPodLink reports whether a link is named like the host end of a pod's veth pair.
func IsPodLink(name string) bool { return podHash(name) != "" }

// podHash returns the part of a veth's name that derives from its pod, empty if it is none of
// ours.
func podHash(link string) string {
	prefix := len(link) - len(netnames.Hash("", "", 0))
	if prefix < 1 || prefix > netnames.MaxVethPrefix || strings.Trim(link[prefix:], "0123456789abcdef") != "" {
		return ""
	}
	return link[prefix:]
}

// maxInterfaces bounds how many interfaces of a pod are looked up.
const maxInterfaces = 4

// podsByHash returns all pods that any source names, by the hash in the names of their links.
func podsByHash(r *evidence.Reading) map[string]evidence.Pod {
	out := map[string]evidence.Pod{}
	add := func(pod evidence.Pod) {
		if namespace, name, ok := strings.Cut(string(pod), "/"); ok && out[netnames.Hash(namespace, name, 0)] == "" {
			for i := range maxInterfaces {
				out[netnames.Hash(namespace, name, i)] = pod
			}
		}
	}
	for _, a := range r.Checkpoint.Content.Allocations {
		add(a.Pod)
	}
	for _, p := range r.Pods.Content {
		add(p.Pod)
	}
	for _, e := range r.ENIs.Content {
		for a := range e.Records() {
			if a.Pod != nil {
				add(*a.Pod)
			}
		}
	}
	return out
}
