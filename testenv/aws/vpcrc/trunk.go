package vpcrc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/fakeaws"
)

var errNoDeviceIndex = errors.New("no free device index found")

// trunkDevice returns the highest free device index of the default card: the node's daemon
// fills from the lowest.
func trunkDevice(l limits.Instance, taken []int) (int, error) {
	slots := l.TotalENIs()
	for _, c := range l.Cards {
		if c.Index == l.DefaultCard {
			slots = min(slots, c.MaxENIs)
		}
	}
	for i := slots - 1; i >= 0; i-- {
		if !slices.Contains(taken, i) {
			return i, nil
		}
	}
	return 0, errNoDeviceIndex
}

// initTrunk finds the instance's trunk, or attaches one.
func (r *run) initTrunk(ctx context.Context, n *node) error {
	for _, e := range r.world.ENIsOf(n.instance.ID) {
		if e.Type == "trunk" {
			if err := r.awaitTrunk(e.ID); err != nil {
				return err
			}
			return r.use(n, e.ID)
		}
	}
	if !r.wait(r.opts.Timing.TrunkAfter) {
		return ctx.Err()
	}
	id, err := r.createTrunk(n)
	if err != nil {
		return err
	}
	if err := r.awaitTrunk(id); err != nil {
		return err
	}
	return r.use(n, id)
}

func (r *run) use(n *node, trunk string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.trunk = trunk
	return nil
}

func (r *run) createTrunk(n *node) (id string, err error) {
	var taken []int
	for _, e := range r.world.ENIsOf(n.instance.ID) {
		if e.Attachment.Card == n.limits.DefaultCard {
			taken = append(taken, e.Attachment.Device)
		}
	}
	device, err := trunkDevice(n.limits, taken)
	switch {
	case err != nil:
		return "", err
	case r.Faults().TrunkUnauthorized:
		return "", &fakeaws.Error{Code: unauthorized, Message: "You are not authorized to perform this operation."}
	}
	e, err := r.world.AddTrunk(fakeaws.TrunkSpec{
		InstanceID: n.instance.ID, Device: device, SubnetID: n.network.subnet.ID, SecurityGroups: n.network.groups,
		Description: trunkDescription, Tags: trunkTags(n.instance.ID),
		MetadataAfter: r.opts.scaled(r.opts.Timing.TrunkMetadataAfter),
		DescribeAfter: r.opts.scaled(r.opts.Timing.TrunkDescribeAfter),
	})
	return e.ID, err
}

// awaitTrunk waits until the trunk is attached.
func (r *run) awaitTrunk(id string) error {
	pause := attachPoll
	for range attachPolls {
		e, there := r.world.ENI(id)
		switch {
		case !there:
			return fmt.Errorf("trunk %s is gone", id)
		case e.Attached():
			return nil
		}
		if !r.wait(pause) {
			return r.ctx.Err()
		}
		pause *= 2
	}
	return fmt.Errorf("trunk %s is not attached in time", id)
}

// recordTrunkEvents writes the events about the result of a trunk request.
func (r *run) recordTrunkEvents(ctx context.Context, obj *corev1.Node, err error) {
	if err == nil {
		r.event(ctx, nodeRef(obj.Name), corev1.EventTypeNormal, "NodeTrunkInitiated", "The node has trunk interface initialized successfully")
		return
	}
	if e := (*fakeaws.Error)(nil); errors.As(err, &e) {
		r.event(ctx, realNodeRef(obj), corev1.EventTypeWarning, "TrunkENICreationFailed", trunkFailure(e.Code))
	}
	r.event(ctx, nodeRef(obj.Name), corev1.EventTypeNormal, "NodeTrunkFailedInit", "The node failed initializing trunk interface")
}

const unauthorized = "UnauthorizedOperation"

func trunkFailure(code string) string {
	text := "Failed to create trunk interface: Error Code: " + code
	if code == unauthorized {
		text += ": Please verify the cluster IAM role has AmazonEKSVPCResourceController policy"
	}
	return text
}
