package vpcrc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Controller is a running controller.
type Controller struct {
	opts    Options
	api     *api
	webhook *webhookServer // nil if Options.Webhook is off

	mu      sync.Mutex // guards faults and current
	faults  Faults
	current *run
}

// Start runs a controller until Stop. The controller becomes idle when ctx ends, but only Stop
// frees its resources. Start returns when the watches are in sync and, with Options.Webhook,
// the webhooks are registered.
func Start(ctx context.Context, o Options) (*Controller, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start resource controller: %w", err)
	}
	c := &Controller{opts: o, faults: o.Faults}
	if c.api, err = newAPI(o); err != nil {
		return nil, fmt.Errorf("start resource controller: %w", err)
	}
	if o.Webhook {
		if c.webhook, err = c.serveWebhooks(ctx); err != nil {
			return nil, fmt.Errorf("start resource controller: %w", err)
		}
	}
	if err := c.Restart(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// Restart discards all state and rebuilds it from EC2 and the annotations, as a new leader
// would.
func (c *Controller) Restart(ctx context.Context) error {
	c.mu.Lock()
	old := c.current
	c.current = nil
	c.mu.Unlock()
	if old != nil {
		old.stop()
	}
	r := newRun(ctx, c)
	c.mu.Lock()
	c.current = r
	c.mu.Unlock()
	if err := r.start(); err != nil {
		return fmt.Errorf("start resource controller: %w", err)
	}
	return nil
}

// Stop stops the controller and removes its webhooks. Everything else stays.
func (c *Controller) Stop(ctx context.Context) error {
	c.mu.Lock()
	r := c.current
	c.current = nil
	c.mu.Unlock()
	if r != nil {
		r.stop()
	}
	var err error
	if c.webhook != nil {
		err = c.webhook.stop(ctx)
	}
	c.api.close()
	return err
}

// Faults returns the active faults.
func (c *Controller) Faults() Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

// SetFaults replaces all faults. Their effects stay: after a fault of the node the controller
// retries at the next change of the Node, after a fault of the pod at the next change of the pod.
func (c *Controller) SetFaults(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

// Mutate changes a new pod as the mutating webhook does. An error is a denial.
func (c *Controller) Mutate(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	v := c.mutate(ctx, pod)
	switch {
	case !v.allowed:
		return nil, errors.New(v.message)
	case v.pod == nil:
		return pod, nil
	}
	return v.pod, nil
}

func (c *Controller) mutate(ctx context.Context, pod *corev1.Pod) verdict {
	return mutatePod(pod, func(p *corev1.Pod) ([]string, error) { return c.api.groupsFor(ctx, p, c.Faults()) })
}

// NodeState is the controller's state of a node.
type NodeState struct {
	Trunk   string // ENI id
	Limit   int    // of branch ENIs
	Pods    int    // pods with branch ENIs
	Used    int    // branch ENIs of pods
	Cooling int    // branch ENIs in the delete queue
	VLANs   []int  // ids in use
}

// Node returns the state of a node with a trunk.
func (c *Controller) Node(name string) (NodeState, bool) {
	c.mu.Lock()
	r := c.current
	c.mu.Unlock()
	if r == nil {
		return NodeState{}, false
	}
	return r.state(name)
}
