package vpcrc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/fakeaws"
)

// node is the controller's state of a managed Node. Its run's mutex guards it.
type node struct {
	name     string
	ready    bool // Init is over
	instance fakeaws.Instance
	limits   limits.Instance
	network  network
	trunk    string // ENI id, "" if this type has none
	vlans    vlans
	pods     map[types.UID][]branch
	pending  map[types.UID]int // branches being created
	queue    queue
	gone     chan struct{} // closed when the node is forgotten
}

// network is the subnet and the security groups of new ENIs.
type network struct {
	subnet fakeaws.Subnet
	groups []string
}

// used counts the branches that count against the type's limit.
func (n *node) used() int {
	sum := len(n.queue)
	for _, b := range n.pods {
		sum += len(b)
	}
	for _, wanted := range n.pending {
		sum += wanted
	}
	return sum
}

// reconcileNode takes a Node from its first sighting to a trunk with capacity.
func (r *run) reconcileNode(ctx context.Context, name string) (time.Duration, error) {
	obj := r.nodeObject(name)
	if obj == nil {
		r.wg.Go(func() { r.forget(name) })
		return 0, nil
	}
	if obj.Labels[computeTypeLabel] == "auto" {
		return 0, nil
	}
	c, err := r.ensureCNINode(ctx, obj)
	if err != nil || !managed(obj, c) {
		return 0, err
	}
	r.mu.Lock()
	n := r.nodes[name]
	if n == nil {
		n = &node{name: name, pods: make(map[types.UID][]branch), pending: make(map[types.UID]int), gone: make(chan struct{})}
		r.nodes[name] = n
		r.mu.Unlock()
		return 0, r.initNode(ctx, n, obj, c)
	}
	r.mu.Unlock()
	return 0, r.updateNode(ctx, n, obj, c)
}

// managed reports whether a Node wants a trunk, by its CNINode or by the older label.
func managed(n *corev1.Node, c *cninode) bool {
	if n.Labels[corev1.LabelOSStable] == "" || instanceOf(n) == "" {
		return false
	}
	if _, labelled := n.Labels[trunkLabel]; labelled { // with any value, even "false"
		return true
	}
	if c == nil || !c.ours() {
		return false
	}
	_, wanted := c.wants(featurePodGroups)
	return wanted
}

// instanceOf extracts the instance id from a Node's provider id, "aws:///us-west-2a/i-…".
func instanceOf(n *corev1.Node) string {
	id := n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]
	if !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

// initNode starts managing a Node. On failure the Node is forgotten until its next change.
func (r *run) initNode(ctx context.Context, n *node, obj *corev1.Node, c *cninode) error {
	r.event(ctx, nodeRef(n.name), corev1.EventTypeNormal, "ControllerVersionNotice", "The node is managed by VPC resource controller version "+version)
	err := r.attempt(ctx, n, obj, c)
	if err != nil && ctx.Err() == nil {
		err = r.attempt(ctx, n, obj, c)
	}
	r.mu.Lock()
	if err != nil {
		delete(r.nodes, n.name)
		r.mu.Unlock()
		r.log.Warn("node is not managed", "node", n.name, "error", err)
		return nil // the Node's next event triggers another attempt
	}
	n.ready = true
	r.mu.Unlock()
	r.wg.Go(func() { r.processQueue(n) })
	return r.advertise(ctx, n, obj)
}

// attempt is one of the two attempts to initialize a node.
func (r *run) attempt(ctx context.Context, n *node, obj *corev1.Node, c *cninode) error {
	if err := r.prepare(ctx, n, obj, c); err != nil || !r.trunkSupported(ctx, n) {
		return err
	}
	err := r.initTrunk(ctx, n)
	r.recordTrunkEvents(ctx, obj, err)
	return err
}

// prepare reads the node's data from EC2.
func (r *run) prepare(ctx context.Context, n *node, obj *corev1.Node, c *cninode) error {
	id := instanceOf(obj)
	i, there := r.world.Instance(id)
	l, _ := r.world.InstanceLimits(id)
	if !there {
		return fmt.Errorf("describe instance %s: it does not exist", id)
	}
	if l.TrunkingCompatible == limits.Unknown {
		r.unsupported(ctx, n.name, fmt.Sprintf("The instance type %s is not supported yet by the vpc resource controller", i.Type))
		return fmt.Errorf("instance type %s is not in the table", i.Type)
	}
	network, err := r.networkOf(ctx, i, obj, c)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n.instance, n.limits, n.network = i, l, network
	return nil
}

func (r *run) unsupported(ctx context.Context, node, message string) {
	r.event(ctx, nodeRef(node), corev1.EventTypeWarning, "Unsupported", message)
}

func (r *run) trunkSupported(ctx context.Context, n *node) bool {
	if n.limits.TrunkingCompatible == limits.Yes {
		return true
	}
	r.unsupported(ctx, n.name, fmt.Sprintf("The instance type %s is not supported for trunk interface (Security Group for Pods)", n.limits.Type))
	return false
}

// networkOf returns the instance's subnet and the groups of its primary ENI, or what its
// ENIConfig says instead.
func (r *run) networkOf(ctx context.Context, i fakeaws.Instance, obj *corev1.Node, c *cninode) (network, error) {
	primary, _ := r.world.ENI(i.PrimaryENI)
	own, _ := r.world.Subnet(i.SubnetID)
	w := network{own, primary.SecurityGroups}
	name, custom := obj.Labels[eniConfigLabel]
	if !custom && c != nil {
		name, custom = c.wants(featureCustom)
	}
	if !custom {
		return w, nil
	}
	if name == "" {
		r.event(ctx, realNodeRef(obj), corev1.EventTypeWarning, "EniConfigNameNotFound",
			fmt.Sprintf("couldn't find custom networking eniconfig name for node %s, error: resource was not found", obj.Name))
		return network{}, errors.New("ENIConfig has no name")
	}
	e, err := get[eniConfig](ctx, r.api, eniConfigsResource, "", name)
	switch {
	case err != nil:
		return network{}, err
	case e == nil:
		return network{}, fmt.Errorf("ENIConfig %s does not exist", name)
	case e.Spec.Subnet == "":
		return w, nil
	}
	// A subnet that EC2 does not have fails when the first ENI is created in it.
	w.subnet, _ = r.world.Subnet(e.Spec.Subnet)
	w.subnet.ID = e.Spec.Subnet
	if len(e.Spec.SecurityGroups) > 0 {
		w.groups = e.Spec.SecurityGroups
	}
	w.groups = slices.Clone(w.groups)
	return w, nil
}

// updateNode re-examines a Node that is already managed.
func (r *run) updateNode(ctx context.Context, n *node, obj *corev1.Node, c *cninode) error {
	r.mu.Lock()
	ready, i := n.ready, n.instance
	r.mu.Unlock()
	if !ready || !r.trunkSupported(ctx, n) {
		return nil
	}
	network, err := r.networkOf(ctx, i, obj, c)
	if err != nil {
		return err
	}
	r.mu.Lock()
	n.network = network
	r.mu.Unlock()
	return r.advertise(ctx, n, obj)
}

// advertise writes the capacity if it is missing or differs.
func (r *run) advertise(ctx context.Context, n *node, obj *corev1.Node) error {
	if n.trunk == "" {
		return nil
	}
	have, there := obj.Status.Capacity[podENIKey]
	want := *resource.NewQuantity(int64(n.limits.BranchENIs), resource.DecimalSI)
	if there && have.Equal(want) {
		return nil
	}
	return r.api.merge(ctx, nodesResource, "", n.name, map[string]any{"status": map[string]any{"capacity": map[string]any{podENIKey: want.String()}}}, "status")
}

// forget drops a Node that does not come back. Its branch ENIs stay, as in upstream.
func (r *run) forget(name string) {
	if !r.wait(nodeGoneAfter) || r.nodeObject(name) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.met, name)
	if n := r.nodes[name]; n != nil {
		delete(r.nodes, name)
		close(n.gone)
	}
}
