package cluster

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
)

// Claims are the branch ENIs that the annotations of pods name. Anyone who may write
// annotations can name the branch ENI of another pod there, unless the VPC resource
// controller's webhook refuses it, which is ignored when it does not answer.
type Claims struct{ pods []claimant }

type claimant struct {
	pod    Pod
	claims []claim
}

// claim is what one entry of an annotation names. A member that the entry lacks, or that
// cannot be used, is zero.
type claim struct {
	eni, mac   string
	vlan       int
	ipv4, ipv6 netip.Addr
}

// ClaimsOf reads the annotations of the pods that may be using a branch ENI. Every entry
// counts, although a pod's network is only ever made of the first: all of them are the pod's.
// What last, the result of an earlier call, has read already is not read again.
func ClaimsOf(pods []Pod, last Claims) Claims {
	read := make(map[string][]claim, len(last.pods)) // by annotation
	for _, c := range last.pods {
		read[c.pod.PodENI] = c.claims
	}
	var out Claims
	for _, p := range pods {
		if !p.OnBranch() {
			continue
		}
		claims, known := read[p.PodENI]
		if !known {
			claims = claimsOf(p.PodENI)
		}
		out.pods = append(out.pods, claimant{p, claims})
	}
	return out
}

// claimsOf reads an annotation. A pod cannot have more branch ENIs than there are VLAN IDs.
func claimsOf(annotation string) (out []claim) {
	elements, err := branchElements(annotation)
	if err != nil {
		return nil
	}
	for _, element := range elements[:min(len(elements), netnames.MaxVLAN)] {
		var e branchEntry
		if json.Unmarshal(element, &e) != nil {
			continue
		}
		var c claim
		if eniID().MatchString(e.ENI) {
			c.eni = e.ENI
		}
		c.mac, _ = parseMAC(e.MAC)
		if _, ok := netnames.BranchTable(e.VLAN); ok {
			c.vlan = e.VLAN
		}
		c.ipv4, _ = netip.ParseAddr(e.IPv4)
		c.ipv6, _ = netip.ParseAddr(e.IPv6)
		out = append(out, c)
	}
	return out
}

// Rival returns another pod of the same node that names the branch ENI which a pod is to
// get, or a part of it, and what both name. Two pods with one VLAN ID cannot both run, and
// which of them the controller gave it to cannot be told from the annotations. Of several
// rivals it returns the first by namespace and name.
func (c Claims) Rival(of Pod, branch Branch) (rival Pod, shared string, found bool) {
	for i := range c.pods {
		other := &c.pods[i]
		if !other.pod.rivals(of) || found && !other.pod.before(rival) {
			continue
		}
		for _, claim := range other.claims {
			if what := claim.shares(branch); len(what) > 0 {
				rival, shared, found = other.pod, strings.Join(what, ", "), true
				break
			}
		}
	}
	return rival, shared, found
}

// rivals reports whether another pod can take something from a pod. A pod of another node
// cannot: VLAN IDs belong to the trunk. One of the same name is the pod's predecessor, of
// which the API server keeps no object.
func (p Pod) rivals(of Pod) bool {
	return p.UID != of.UID && (p.NodeName == of.NodeName || of.NodeName == "") && (p.Namespace != of.Namespace || p.Name != of.Name)
}

func (p Pod) before(o Pod) bool {
	return p.Namespace < o.Namespace || p.Namespace == o.Namespace && p.Name < o.Name
}

// shares lists what a claim has in common with a branch ENI.
func (c claim) shares(b Branch) (what []string) {
	if c.eni != "" && c.eni == b.ENI {
		what = append(what, c.eni)
	}
	if c.mac != "" && c.mac == b.MAC {
		what = append(what, "MAC "+c.mac)
	}
	if c.vlan != 0 && c.vlan == b.VLAN {
		what = append(what, "VLAN "+strconv.Itoa(c.vlan))
	}
	if b.Address.IsValid() && (c.ipv4 == b.Address || c.ipv6 == b.Address) {
		what = append(what, "address "+b.Address.String())
	}
	return what
}
