package vpcrc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/testenv/aws/fakeaws"
)

// reconcilePod gives a bound pod its branch ENIs.
func (r *run) reconcilePod(ctx context.Context, k types.NamespacedName) (time.Duration, error) {
	pod := r.podObject(k)
	if pod == nil || ended(pod) || pod.Annotations[podENIKey] != "" {
		return 0, nil
	}
	r.mu.Lock()
	n := r.nodes[pod.Spec.NodeName]
	ready := n != nil && n.ready && n.trunk != ""
	r.mu.Unlock()
	if !ready {
		return unreadyRetry, nil
	}
	live, err := get[corev1.Pod](ctx, r.api, podsResource, k.Namespace, k.Name)
	if err != nil || live == nil || live.UID != pod.UID || live.Annotations[podENIKey] != "" {
		return 0, err
	}
	groups, err := r.requestedGroups(ctx, n, live)
	if err != nil {
		return 0, err
	}
	return r.allocate(ctx, n, live, groups)
}

// requestedGroups matches the policies again and records the result as an event of the pod.
func (r *run) requestedGroups(ctx context.Context, n *node, pod *corev1.Pod) ([]string, error) {
	groups, err := r.api.groupsFor(ctx, pod)
	if err != nil {
		return nil, err
	}
	if len(groups) > 0 {
		r.event(ctx, podRef(pod), corev1.EventTypeNormal, "SecurityGroupRequested", "Pod will get the following Security Groups ["+strings.Join(groups, " ")+"]")
		return groups, nil
	}
	r.event(ctx, podRef(pod), corev1.EventTypeWarning, "SecurityGroupRequested",
		"Pod will get the instance security group as the pod didn't match any Security Group from SecurityGroupPolicy")
	r.mu.Lock()
	defer r.mu.Unlock()
	return n.network.groups, nil
}

// allocate creates the pod's branch ENIs, or waits one cool-down if the node has reached its
// type's limit. The limit is checked once for all branches of the pod.
func (r *run) allocate(ctx context.Context, n *node, pod *corev1.Pod, groups []string) (time.Duration, error) {
	f := r.Faults()
	wanted := branchesWanted(pod)
	if f.AnnotationTwice {
		wanted++
	}
	r.mu.Lock()
	older, there := n.pods[pod.UID]
	full := n.used() >= n.limits.BranchENIs || f.AtCapacity
	if !there && !full {
		n.pending[pod.UID] = wanted
	}
	r.mu.Unlock()
	switch {
	case there:
		return 0, r.allocationFailed(ctx, pod, fmt.Errorf("cannot create new eni entry already exist, older entry : %v", older))
	case full:
		return cooldown, nil
	}
	branches, err := r.createBranches(n, wanted, groups, f)
	if err != nil {
		r.discard(n, pod.UID, branches)
		return 0, r.allocationFailed(ctx, pod, err)
	}
	r.mu.Lock()
	delete(n.pending, pod.UID)
	n.pods[pod.UID] = branches
	r.mu.Unlock()
	if err := r.annotate(ctx, pod, branches); err != nil {
		r.discard(n, pod.UID, branches)
		return 0, ignoreNotFound(err)
	}
	if now := r.podObject(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}); now == nil || now.UID != pod.UID || ended(now) {
		r.release(pod.UID) // the pod ended meanwhile
	}
	return 0, nil
}

func (r *run) allocationFailed(ctx context.Context, pod *corev1.Pod, err error) error {
	err = fmt.Errorf("failed to allocate branch ENI to pod: %w", err)
	r.event(ctx, podRef(pod), corev1.EventTypeWarning, "BranchAllocationFailed", err.Error())
	return err
}

// createBranches creates count branches. On error it returns those created so far.
func (r *run) createBranches(n *node, count int, groups []string, f Faults) ([]branch, error) {
	var made []branch
	for range count {
		b, err := r.createBranch(n, groups, f)
		if b.ENI != "" {
			made = append(made, b)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}

// createBranch creates a branch with the lowest free VLAN id. If it returns an error and a
// branch with an ENI, the caller must delete that branch.
func (r *run) createBranch(n *node, groups []string, f Faults) (branch, error) {
	r.mu.Lock()
	vlan, err := n.vlans.take()
	w, trunk := n.network, n.trunk
	r.mu.Unlock()
	if err != nil {
		return branch{}, fmt.Errorf("assigning vlad id, %w", err)
	}
	e, err := r.createENI(fakeaws.ENISpec{SubnetID: w.subnet.ID, Description: branchDescription, SecurityGroups: groups,
		Tags: branchTags(n.instance.ID, trunk, strconv.Itoa(vlan))}, f)
	if err != nil {
		r.mu.Lock()
		n.vlans.free(vlan)
		r.mu.Unlock()
		return branch{}, fmt.Errorf("creating network interface, %w", err)
	}
	b := branch{ENI: e.ID, MAC: e.MAC, IP: e.PrimaryIP.String(), VLAN: vlan, SubnetCIDR: w.subnet.CIDR.String()}
	if len(e.IPv6s) > 0 {
		b.IPv6 = e.IPv6s[0].String()
	}
	// Taken from the instance's subnet, even if an ENIConfig names another.
	if own, _ := r.world.Subnet(n.instance.SubnetID); own.IPv6CIDR.IsValid() {
		b.SubnetCIDR6 = own.IPv6CIDR.String()
	}
	a, err := r.world.AssociateBranch(fakeaws.AssociateSpec{Trunk: trunk, Branch: e.ID, VLAN: vlan})
	if err != nil {
		return b, fmt.Errorf("associating branch to trunk, %w", err)
	}
	b.AssociationID = a.ID
	return b, nil
}

func (r *run) createENI(s fakeaws.ENISpec, f Faults) (fakeaws.ENI, error) {
	if f.SubnetFull {
		return fakeaws.ENI{}, &fakeaws.Error{Code: "InsufficientFreeAddressesInSubnet", Message: "The specified subnet does not have enough free addresses to satisfy the request."}
	}
	return r.world.CreateENI(s)
}

// annotate writes the branches to the pod's annotation and records an event.
func (r *run) annotate(ctx context.Context, pod *corev1.Pod, branches []branch) error {
	if d := r.Faults().AnnotationDelay; d > 0 && !r.wait(d) {
		return ctx.Err()
	}
	f := r.Faults() // read again after the delay
	text, err := annotation(branches, f)
	if err == nil {
		err = r.writeAnnotation(ctx, pod, text, f)
	}
	if err != nil {
		r.event(ctx, podRef(pod), corev1.EventTypeWarning, "BranchENIAnnotationFailed", fmt.Sprintf("failed to annotate pod with branch ENI details: %v", err))
		return err
	}
	r.event(ctx, podRef(pod), corev1.EventTypeNormal, "ResourceAllocated", "Allocated "+text+" to the pod")
	return nil
}

func (r *run) writeAnnotation(ctx context.Context, pod *corev1.Pod, text string, f Faults) error {
	now, err := get[corev1.Pod](ctx, r.api, podsResource, pod.Namespace, pod.Name)
	switch {
	case err != nil:
		return err
	case now == nil:
		return apierrors.NewNotFound(podsResource.GroupResource(), pod.Name)
	case now.UID != pod.UID:
		return fmt.Errorf("not annotating the Pod with UID %s as the annotation was intended for Pod with UID %s", now.UID, pod.UID)
	case f.AnnotationDenied:
		return apierrors.NewForbidden(podsResource.GroupResource(), pod.Name,
			fmt.Errorf("User %q cannot patch resource \"pods\" in API group \"\" in the namespace %q", controllerUser, pod.Namespace))
	}
	return r.api.merge(ctx, podsResource, pod.Namespace, pod.Name, map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]any{podENIKey: text}},
	})
}

// ignoreNotFound drops NotFound errors: a job for a deleted pod is not retried.
func ignoreNotFound(err error) error {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
