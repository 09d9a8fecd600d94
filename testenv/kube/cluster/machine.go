package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// Machine is one node of the cluster: an instance and what runs on it. The methods that start
// and stop things on it are not safe for concurrent use.
type Machine struct {
	Name     string // its name in the API
	Instance *fakeaws.Instance
	Dir      string // its files
	MaxPods  int    // as the type's ENIs allow
	*node.Node

	cluster  *Cluster
	labels   map[string]string // with which it registers
	services map[string]*service
	booted   time.Time
}

// newMachine launches an instance, which boots later.
func (c *Cluster) newMachine(number int, o NodeOptions) (*Machine, error) {
	if o.Type == "" {
		o.Type = defaultType
	}
	facts, ok := limits.Lookup(o.Type)
	if !ok {
		return nil, fmt.Errorf("no instance type %q is known", o.Type)
	}
	instance, err := c.World.AddInstance(fakeaws.InstanceSpec{Type: o.Type, SubnetID: c.Subnet.ID, IPv6: o.IPv6 || c.opts.IPv6})
	if err != nil {
		return nil, err
	}
	dir, err := c.mkdir(fmt.Sprintf("n%d", number+1)) // short, because socket paths are limited
	if err != nil {
		return nil, err
	}
	name := "ip-" + strings.ReplaceAll(instance.PrimaryIP.String(), ".", "-") + "." + c.World.Region() + ".compute.internal"
	return &Machine{
		Name: name, Instance: instance, Dir: dir, MaxPods: maxpods.Nodeadm(facts),
		cluster: c, services: map[string]*service{},
		labels: map[string]string{corev1.LabelInstanceTypeStable: instance.Type, corev1.LabelTopologyZone: instance.AZ},
	}, nil
}

// boot starts what a node runs before its pods.
func (m *Machine) boot(ctx context.Context) (err error) {
	m.booted = time.Now().Truncate(time.Second) // the API's precision
	m.Node, err = node.Start(ctx, node.Options{
		Fabric: m.cluster.Fabric, World: m.cluster.World, InstanceID: m.Instance.ID,
		Dir: m.Dir, Binaries: m.cluster.opts.Binaries, Name: m.Name,
	})
	if err != nil {
		return err
	}
	if err := m.layFiles(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{m.StartContainerd, m.importImages, m.StartKubelet, m.StartProxy} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Reboot ends everything on the machine at once, as a power failure does, and boots it
// again: the network namespace and /run are new, the files are unchanged.
func (m *Machine) Reboot(ctx context.Context) error {
	if err := m.close(); err != nil {
		return err
	}
	return m.boot(ctx)
}

func (m *Machine) close() error {
	if m.Node == nil {
		return nil
	}
	err := m.Node.Close()
	for _, s := range m.services {
		err = errors.Join(err, s.log.Close())
	}
	m.Node, m.services = nil, map[string]*service{}
	return err
}

// Object returns the Node object.
func (m *Machine) Object(ctx context.Context) (*corev1.Node, error) {
	return Get[corev1.Node](ctx, m.cluster, "", m.Name)
}

// Ready reports whether the kubelet of this boot has set the node Ready, with the reason
// and message of the condition.
func (m *Machine) Ready(ctx context.Context) (ready bool, why string, err error) {
	object, err := m.Object(ctx)
	if err != nil {
		return false, "", err
	}
	for _, c := range object.Status.Conditions {
		if c.Type == corev1.NodeReady && !c.LastHeartbeatTime.Time.Before(m.booted) {
			return c.Status == corev1.ConditionTrue, c.Reason + ": " + c.Message, nil
		}
	}
	return false, "no condition yet", nil
}

// AwaitReady waits until the node is Ready.
func (m *Machine) AwaitReady(ctx context.Context) error {
	return Await(ctx, "node "+m.Name+" to be Ready", func() error {
		ready, why, err := m.Ready(ctx)
		if err == nil && !ready {
			err = errors.New(why)
		}
		return err
	})
}

// pollEvery is short compared to the waits and long compared to a request.
const pollEvery = 100 * time.Millisecond

// Await repeats a check until it passes or the context ends. Its error includes the last
// error of the check.
func Await(ctx context.Context, what string, check func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last: %w", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
