package vpcrc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/fakeaws"
)

// Names of what the controller reads and writes.
const (
	clusterName       = "cluster"
	featurePodGroups  = "SecurityGroupsForPods"
	featureCustom     = "CustomNetworking"
	trunkDescription  = "aws-k8s-trunk-eni"
	branchDescription = "aws-k8s-branch-eni"
	tagInstance       = "node.k8s.amazonaws.com/instance_id"
	tagVLAN           = "vpcresources.k8s.aws/vlan-id"
	tagTrunk          = "vpcresources.k8s.aws/trunk-eni-id"
)

func trunkTags(instanceID string) map[string]string {
	return map[string]string{tagInstance: instanceID, "eks:eni:owner": "eks-vpc-resource-controller", "kubernetes.io/cluster/" + clusterName: "owned"}
}

// network is the subnet and the security groups of new ENIs.
type network struct {
	subnet fakeaws.Subnet
	groups []string
}

// reconcileNode takes the Node from its first sighting to a trunk with capacity.
func (c *Controller) reconcileNode(types.NamespacedName) (again time.Duration, err error) {
	obj, err := get[corev1.Node](c, nodesResource, "", c.opts.Node)
	if err != nil || obj == nil {
		return 0, err
	}
	cn, err := c.ensureCNINode(obj)
	if err != nil || cn == nil {
		return 0, err
	}
	if _, wanted := cn.wants(featurePodGroups); !wanted {
		return 0, nil
	}
	id := obj.Spec.ProviderID[strings.LastIndexByte(obj.Spec.ProviderID, '/')+1:]
	i, there := c.opts.World.Instance(id)
	if !there {
		return 0, fmt.Errorf("describe instance %q of Node %s: it does not exist", id, obj.Name)
	}
	l, _ := c.opts.World.InstanceLimits(id)
	w, err := c.networkOf(i, cn)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.instance, c.limits, c.network = i, l, w
	trunk := c.trunk
	c.mu.Unlock()
	if trunk == "" {
		return c.createTrunk(obj)
	}
	if e, _ := c.opts.World.ENI(trunk); !e.Attached() {
		return time.Second, nil
	}
	c.mu.Lock()
	first := !c.ready
	c.ready = true
	c.mu.Unlock()
	if first {
		c.event(nodeRef(obj.Name), corev1.EventTypeNormal, "NodeTrunkInitiated", "The node has trunk interface initialized successfully")
	}
	return 0, c.advertise(obj, l.BranchENIs)
}

// ensureCNINode gets the Node's CNINode, and creates it for a new Node. It returns nil if
// the CNINode does not exist.
func (c *Controller) ensureCNINode(n *corev1.Node) (*cninode, error) {
	cn, err := get[cninode](c, cninodesResource, "", n.Name)
	if err != nil || cn != nil || c.met {
		c.met = c.met || cn != nil
		return cn, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"tags": map[string]any{"cluster.k8s.amazonaws.com/name": clusterName}},
	}}
	u.SetAPIVersion(cninodesResource.GroupVersion().String())
	u.SetKind("CNINode")
	u.SetName(n.Name)
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(n, corev1.SchemeGroupVersion.WithKind("Node"))})
	if u, err = c.of(cninodesResource, "").Create(c.ctx, u, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create CNINode %s: %w", n.Name, err)
	}
	c.met = true
	return into[cninode](u)
}

// networkOf returns the instance's subnet and the groups of its primary ENI, or what its
// ENIConfig says instead.
func (c *Controller) networkOf(i fakeaws.Instance, cn *cninode) (network, error) {
	primary, _ := c.opts.World.ENI(i.PrimaryENI)
	own, _ := c.opts.World.Subnet(i.SubnetID)
	w := network{own, primary.SecurityGroups}
	name, custom := cn.wants(featureCustom)
	if !custom {
		return w, nil
	}
	e, err := get[eniConfig](c, eniConfigsResource, "", name)
	if err == nil && e == nil {
		err = fmt.Errorf("ENIConfig %s does not exist", name)
	}
	if err != nil {
		return network{}, err
	}
	// A subnet that EC2 does not have fails when the first ENI is created in it.
	w.subnet, _ = c.opts.World.Subnet(e.Spec.Subnet)
	w.subnet.ID = e.Spec.Subnet
	if len(e.Spec.SecurityGroups) > 0 {
		w.groups = e.Spec.SecurityGroups
	}
	return w, nil
}

// createTrunk attaches the trunk. The caller must come again to see whether it is attached.
// If it fails, the next change of the Node triggers another attempt.
func (c *Controller) createTrunk(obj *corev1.Node) (again time.Duration, err error) {
	if !c.wait(trunkAfter) {
		return 0, c.ctx.Err()
	}
	id, err := c.addTrunk()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.trunk = id
		return time.Millisecond, nil
	}
	if e := (*fakeaws.Error)(nil); errors.As(err, &e) {
		text := "Failed to create trunk interface: Error Code: " + e.Code
		if e.Code == unauthorized {
			text += ": Please verify the cluster IAM role has AmazonEKSVPCResourceController policy"
		}
		about := nodeRef(obj.Name)
		about.UID = obj.UID
		c.event(about, corev1.EventTypeWarning, "TrunkENICreationFailed", text)
	}
	c.event(nodeRef(obj.Name), corev1.EventTypeNormal, "NodeTrunkFailedInit", "The node failed initializing trunk interface")
	return 0, nil
}

const unauthorized = "UnauthorizedOperation"

// nodeRef refers to a Node as most of upstream's events do, with the node's name as the UID.
func nodeRef(name string) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "Node", Name: name, UID: types.UID(name)}
}

func (c *Controller) addTrunk() (id string, err error) {
	c.mu.Lock()
	i, l, w, refused := c.instance, c.limits, c.network, c.faults.TrunkUnauthorized
	c.mu.Unlock()
	device, err := trunkDevice(l, c.opts.World.ENIsOf(i.ID))
	switch {
	case err != nil:
		return "", err
	case refused:
		return "", &fakeaws.Error{Code: unauthorized, Message: "You are not authorized to perform this operation."}
	}
	e, err := c.opts.World.AddTrunk(fakeaws.TrunkSpec{
		InstanceID: i.ID, Device: device, SubnetID: w.subnet.ID, SecurityGroups: w.groups,
		Description: trunkDescription, Tags: trunkTags(i.ID),
		MetadataAfter: c.scaled(c.opts.Timing.TrunkMetadataAfter),
		DescribeAfter: c.scaled(c.opts.Timing.TrunkDescribeAfter),
	})
	return e.ID, err
}

// trunkDevice returns the highest free device index of the default card: the node's daemon
// fills from the lowest.
func trunkDevice(l limits.Instance, taken []fakeaws.ENI) (int, error) {
	slots := l.TotalENIs()
	for _, card := range l.Cards {
		if card.Index == l.DefaultCard {
			slots = min(slots, card.MaxENIs)
		}
	}
	for device := slots - 1; device >= 0; device-- {
		if !slices.ContainsFunc(taken, func(e fakeaws.ENI) bool {
			return e.Attachment.Card == l.DefaultCard && e.Attachment.Device == device
		}) {
			return device, nil
		}
	}
	return 0, errors.New("no free device index found")
}

// advertise writes the capacity if it is missing or differs.
func (c *Controller) advertise(obj *corev1.Node, branches int) error {
	want := *resource.NewQuantity(int64(branches), resource.DecimalSI)
	if have, there := obj.Status.Capacity[podENIKey]; there && have.Equal(want) {
		return nil
	}
	patch := map[string]any{"status": map[string]any{"capacity": map[string]any{podENIKey: want.String()}}}
	return c.merge(nodesResource, "", obj.Name, patch, "status")
}
