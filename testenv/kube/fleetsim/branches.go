package fleetsim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubequantity "k8s.io/apimachinery/pkg/api/resource"
)

// podENIName is the resource that pods request, and the annotation with the branch ENI that
// the VPC resource controller created.
const podENIName = "vpc.amazonaws.com/pod-eni"

// branchCooldown is how long the controller keeps the branch ENI of a deleted pod.
const branchCooldown = time.Minute

// branchPods are a node's pods with their own security groups, and the branch ENIs in
// cooldown. They take nothing from the node's pool.
type branchPods struct {
	pods    []*workload // by age
	cooling []keptBranch
	made    int // pods created so far
}

// keptBranch is a branch ENI without a pod.
type keptBranch struct {
	vlan  int
	until time.Time
}

// begin creates count pods with branches and, on some nodes, a waiting one.
func (g *branchPods) begin(w *world, count int) {
	s := w.node.sim
	for i := range count {
		age := s.epoch.Sub(w.node.started)
		g.add(w, w.node.started.Add(age*time.Duration(i+1)/time.Duration(count+1))).vlan = i + 1
	}
	if s.hash(w.node.index, "branch wanted")%3 == 0 {
		g.add(w, s.epoch)
	}
}

// add creates a pod that waits for its branch ENI.
func (g *branchPods) add(w *world, created time.Time) *workload {
	g.made++
	s := w.node.sim
	app := apps[s.hash(w.node.index, fmt.Sprint("branch app ", g.made))%uint64(len(apps))]
	p := &workload{
		namespace: app.namespace, number: g.made, created: created.Truncate(time.Second), version: firstVersion, wantsBranch: true,
		name: app.name + "-" + suffix(s.hash(-4, app.name), 9) + "-" + suffix(s.hash(w.node.index, fmt.Sprint("branch pod ", g.made)), 5),
	}
	g.pods = append(g.pods, p)
	return p
}

// inUse counts the branch ENIs, including those in cooldown.
func (g *branchPods) inUse() int {
	n := len(g.cooling)
	for _, p := range g.pods {
		if p.vlan > 0 {
			n++
		}
	}
	return n
}

// waiting counts the pods that wait, and says when the oldest of them was created.
func (g *branchPods) waiting() (count *int, since *time.Time) {
	n := 0
	for _, p := range g.pods {
		if p.vlan > 0 {
			continue
		}
		if n++; since == nil || p.created.Before(*since) {
			since = new(p.created.UTC())
		}
	}
	return &n, since
}

// serve gives the waiting pods their branch ENIs, as the controller does.
func (g *branchPods) serve(w *world) {
	g.cooling = slices.DeleteFunc(g.cooling, func(k keptBranch) bool { return !k.until.After(w.Now) })
	limit := w.node.profile.limits.BranchENIs
	for _, p := range g.pods {
		if p.vlan == 0 && g.inUse() < limit {
			was := w.node.podObject(p)
			p.vlan = g.freeVLAN()
			w.published(p, was, changed)
		}
	}
}

// turn adds a pod (+1), removes one (-1) or does neither.
func (g *branchPods) turn(w *world, by int) {
	limit := w.node.profile.limits.BranchENIs
	switch {
	case by > 0 && len(g.pods) < limit && !w.node.cordoned:
		w.published(g.add(w, w.Now), nil, added)
	case by < 0 && len(g.pods) > 0:
		p := g.pods[0]
		was := w.node.podObject(p)
		g.pods = g.pods[1:]
		if p.vlan > 0 {
			g.cooling = append(g.cooling, keptBranch{p.vlan, w.Now.Add(branchCooldown)})
		}
		w.published(p, was, deleted)
	}
}

// freeVLAN returns the lowest VLAN that no branch uses.
func (g *branchPods) freeVLAN() int {
	for vlan := 1; ; vlan++ {
		if !slices.ContainsFunc(g.pods, func(p *workload) bool { return p.vlan == vlan }) &&
			!slices.ContainsFunc(g.cooling, func(k keptBranch) bool { return k.vlan == vlan }) {
			return vlan
		}
	}
}

// branchAddress returns a branch ENI's address, in a range of the VPC reserved for them.
func (n *node) branchAddress(vlan int) netip.Addr {
	const perNode, reserved = 128, 4
	at := n.index*perNode + reserved + vlan
	return netip.AddrFrom4([4]byte{100, 64 + byte(at>>16), byte(at >> 8), byte(at)})
}

// branchLabel is what the security group policy selects on.
const branchLabel = "security-groups"

// addBranch adds the resource request to a pod, and the controller's annotation.
func (n *node) addBranch(o *corev1.Pod, p *workload) {
	list := corev1.ResourceList{podENIName: *kubequantity.NewQuantity(1, kubequantity.DecimalSI)}
	o.Labels[branchLabel] = "true"
	o.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
	if p.vlan == 0 {
		return
	}
	address := n.branchAddress(p.vlan)
	subnet := netip.PrefixFrom(address, 18).Masked()
	o.Annotations = map[string]string{podENIName: fmt.Sprintf(
		`[{"eniId":"eni-0%016x","ifAddress":"06:%02x:%02x:00:00:%02x","privateIp":%q,"ipv6Addr":"","vlanId":%d,"subnetCidr":%q,"subnetV6Cidr":"","associationID":"trunk-assoc-%08x"}]`,
		n.sim.hash(n.index, fmt.Sprint("branch ", p.number)), byte(n.index>>8), byte(n.index), byte(p.vlan), address, p.vlan, subnet, uint32(n.sim.hash(n.index, fmt.Sprint("association ", p.number))))}
	o.Status.PodIP = address.String()
	o.Status.PodIPs = []corev1.PodIP{{IP: o.Status.PodIP}}
}
