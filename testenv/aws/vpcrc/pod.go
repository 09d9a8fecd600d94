package vpcrc

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/aws/fakeaws"
)

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// branchesRequested sums the requests of all containers; init containers do not count.
func branchesRequested(p *corev1.Pod) (n int) {
	for _, c := range p.Spec.Containers {
		q := c.Resources.Requests[podENIKey]
		n += int(q.Value())
	}
	return n
}

func wantsBranch(p *corev1.Pod) bool {
	return !ended(p) && branchesRequested(p) > 0 && p.Annotations[podENIKey] == ""
}

// reconcilePod gives a bound pod its branch ENIs, or waits one cool-down if the node has
// reached its type's limit. The limit is checked once for all branches of the pod.
func (c *Controller) reconcilePod(k types.NamespacedName) (again time.Duration, err error) {
	pod, err := get[corev1.Pod](c, podsResource, k.Namespace, k.Name)
	if err != nil || pod == nil || !wantsBranch(pod) {
		return 0, err
	}
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	if !ready {
		return unreadyRetry, nil
	}
	c.event(podRef(pod), corev1.EventTypeWarning, "SecurityGroupRequested",
		"Pod will get the instance security group as the pod didn't match any Security Group from SecurityGroupPolicy")
	c.mu.Lock()
	f, older := c.faults, c.pods[pod.UID]
	full := c.used >= c.limits.BranchENIs || f.AtCapacity
	wanted := branchesRequested(pod)
	if f.AnnotationTwice {
		wanted++
	}
	if older == nil && !full {
		c.used += wanted
	}
	c.mu.Unlock()
	switch {
	case older != nil:
		return 0, c.allocationFailed(pod, fmt.Errorf("cannot create new eni entry already exist, older entry : %v", older))
	case full:
		return cooldown, nil
	}
	branches, err := c.createBranches(wanted, f)
	c.mu.Lock()
	c.used -= wanted - len(branches)
	c.pods[pod.UID] = branches
	c.mu.Unlock()
	if err != nil {
		c.discard(pod.UID)
		return 0, c.allocationFailed(pod, err)
	}
	if err := c.annotate(pod, branches); err != nil {
		c.discard(pod.UID)
		if s := apierrors.APIStatus(nil); errors.As(err, &s) && apierrors.IsNotFound(err) {
			return 0, nil // the pod was deleted meanwhile
		}
		return 0, err
	}
	if now, err := get[corev1.Pod](c, podsResource, k.Namespace, k.Name); err == nil && (now == nil || now.UID != pod.UID || ended(now)) {
		c.release(pod.UID) // the pod ended meanwhile
	}
	return 0, nil
}

func (c *Controller) allocationFailed(pod *corev1.Pod, err error) error {
	err = fmt.Errorf("failed to allocate branch ENI to pod: %w", err)
	c.event(podRef(pod), corev1.EventTypeWarning, "BranchAllocationFailed", err.Error())
	return err
}

// createBranches creates count branches. On error it returns those that have an ENI.
func (c *Controller) createBranches(count int, f Faults) (made []branch, err error) {
	for range count {
		b, err := c.createBranch(f)
		if b.ENI != "" {
			made = append(made, b)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// createBranch creates a branch with the lowest free VLAN id; 0 is reserved.
func (c *Controller) createBranch(f Faults) (branch, error) {
	c.mu.Lock()
	vlan := slices.Index(c.vlans[1:], false) + 1
	c.vlans[vlan] = true
	w, instance, trunk := c.network, c.instance, c.trunk
	c.mu.Unlock()
	tags := trunkTags(instance.ID)
	tags[tagVLAN], tags[tagTrunk] = strconv.Itoa(vlan), trunk
	e, err := fakeaws.ENI{}, error(&fakeaws.Error{
		Code: "InsufficientFreeAddressesInSubnet", Message: "The specified subnet does not have enough free addresses to satisfy the request.",
	})
	if !f.SubnetFull {
		e, err = c.opts.World.CreateENI(fakeaws.ENISpec{SubnetID: w.subnet.ID, Description: branchDescription, SecurityGroups: w.groups, Tags: tags})
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.vlans[vlan] = false
		return branch{}, fmt.Errorf("creating network interface, %w", err)
	}
	b := branch{ENI: e.ID, MAC: e.MAC, IP: e.PrimaryIP.String(), VLAN: vlan, SubnetCIDR: w.subnet.CIDR.String()}
	if len(e.IPv6s) > 0 {
		b.IPv6 = e.IPv6s[0].String()
	}
	// Taken from the instance's subnet, even if an ENIConfig names another.
	if own, _ := c.opts.World.Subnet(instance.SubnetID); own.IPv6CIDR.IsValid() {
		b.SubnetCIDR6 = own.IPv6CIDR.String()
	}
	a, err := c.opts.World.AssociateBranch(fakeaws.AssociateSpec{Trunk: trunk, Branch: e.ID, VLAN: vlan})
	if err != nil {
		return b, fmt.Errorf("associating branch to trunk, %w", err)
	}
	b.AssociationID = a.ID
	return b, nil
}

// annotate writes the branches to the pod's annotation and records an event.
func (c *Controller) annotate(pod *corev1.Pod, branches []branch) error {
	if d := c.activeFaults().AnnotationDelay; d > 0 && !c.wait(d) {
		return c.ctx.Err()
	}
	f := c.activeFaults() // read again after the delay
	text, err := annotation(branches, f)
	switch {
	case err != nil:
	case f.AnnotationDenied:
		err = apierrors.NewForbidden(podsResource.GroupResource(), pod.Name, fmt.Errorf(
			"User \"eks:vpc-resource-controller\" cannot patch resource \"pods\" in API group \"\" in the namespace %q", pod.Namespace))
	default: // with the UID: not another pod of this name
		err = c.merge(podsResource, pod.Namespace, pod.Name, map[string]any{
			"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]any{podENIKey: text}},
		})
	}
	if err != nil {
		c.event(podRef(pod), corev1.EventTypeWarning, "BranchENIAnnotationFailed", fmt.Sprintf("failed to annotate pod with branch ENI details: %v", err))
		return err
	}
	c.event(podRef(pod), corev1.EventTypeNormal, "ResourceAllocated", "Allocated "+text+" to the pod")
	return nil
}

// parked is a branch ENI that waits for its deletion.
type parked struct {
	branch
	until time.Time
}

// release lets the branches of a pod that ended cool down.
func (c *Controller) release(uid types.UID) {
	if c.activeFaults().ReuseVLANs {
		c.discard(uid)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.park(uid, time.Now().Add(c.scaled(cooldown)))
}

// discard deletes the branches of a pod at once.
func (c *Controller) discard(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.park(uid, time.Now())
	c.deleteDue()
}

func (c *Controller) park(uid types.UID, until time.Time) {
	for _, b := range c.pods[uid] {
		c.parked = append(c.parked, parked{b, until})
	}
	delete(c.pods, uid)
}

// deleteCooled deletes what has cooled down at every tick.
func (c *Controller) deleteCooled() {
	for c.wait(queueTick) {
		c.mu.Lock()
		c.deleteDue()
		c.mu.Unlock()
	}
}

// deleteDue deletes the branch ENIs that have cooled down. It keeps those that EC2 does not
// delete, for the next time.
func (c *Controller) deleteDue() {
	now := time.Now()
	c.parked = slices.DeleteFunc(c.parked, func(p parked) bool {
		if now.Before(p.until) {
			return false
		}
		if p.AssociationID != "" {
			_ = c.opts.World.DisassociateBranch(p.AssociationID) // it ends with the ENI
		}
		err := c.opts.World.DeleteENI(p.ENI)
		if e := (*fakeaws.Error)(nil); err != nil && !(errors.As(err, &e) && e.Code == "InvalidNetworkInterfaceID.NotFound") {
			return false
		}
		c.vlans[p.VLAN] = false
		c.used--
		return true
	})
}
