package vpcrc

import (
	"context"
	"fmt"
	"sync"
)

// Controller is a running controller.
type Controller struct {
	opts Options
	api  *api
	run  *run

	mu     sync.Mutex // guards faults
	faults Faults
}

// Start runs a controller until Stop. The controller becomes idle when ctx ends, but only Stop
// frees its resources. Start returns when the watches are in sync.
func Start(ctx context.Context, o Options) (*Controller, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start resource controller: %w", err)
	}
	c := &Controller{opts: o, faults: o.Faults}
	if c.api, err = newAPI(o); err != nil {
		return nil, fmt.Errorf("start resource controller: %w", err)
	}
	c.run = newRun(ctx, c)
	if err := c.run.start(); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start resource controller: %w", err)
	}
	return c, nil
}

// Stop stops the controller. What it made stays.
func (c *Controller) Stop() {
	c.run.stop()
	c.api.close()
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
