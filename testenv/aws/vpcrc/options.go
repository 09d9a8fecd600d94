package vpcrc

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"cnictl/testenv/aws/fakeaws"
)

// Options configure a controller.
type Options struct {
	Kube  *rest.Config   // of an administrator, who may impersonate the controller; required
	World *fakeaws.World // required

	Nodes []string // Nodes to manage, nil for all; for tests that share an API server

	// Scale is how long one second of upstream lasts here, in seconds. Default 1.
	Scale  float64
	Timing Timing
	Faults Faults
	Log    *slog.Logger // default: discarded
}

// Timing holds the delays that upstream leaves to EC2, before Scale. 0 is the default, a
// negative time means none.
type Timing struct {
	TrunkAfter         time.Duration // from the request to the attachment; default 2 s
	TrunkMetadataAfter time.Duration // from there to the metadata service; default 2 s
	TrunkDescribeAfter time.Duration // from there to EC2's lists; default none
	BranchAfter        time.Duration // from a pod's binding to its branch ENI; default 500 ms
}

func (t Timing) withDefaults() Timing {
	return Timing{
		TrunkAfter:         max(cmp.Or(t.TrunkAfter, 2*time.Second), 0),
		TrunkMetadataAfter: max(cmp.Or(t.TrunkMetadataAfter, 2*time.Second), 0),
		TrunkDescribeAfter: max(t.TrunkDescribeAfter, 0),
		BranchAfter:        max(cmp.Or(t.BranchAfter, 500*time.Millisecond), 0),
	}
}

// Upstream's times, before Scale.
const (
	cooldown      = time.Minute      // of a branch ENI, the default
	unreadyRetry  = time.Second      // a pod whose node is not ready yet
	queueTick     = 30 * time.Second // between two checks of a node's delete queue
	resyncPeriod  = 30 * time.Minute
	nodeGoneAfter = time.Minute // until a deleted Node is forgotten
	attachPoll    = time.Second // first wait for an attachment, doubling
	attachPolls   = 7
	recreateWait  = 3 * time.Second // for a deleted CNINode to be gone
)

// Retries of failed jobs are not scaled: they depend on retries, not on time.
const (
	maxRetries   = 5 // after the first try
	firstBackoff = 5 * time.Millisecond
	maxBackoff   = time.Second
)

// Names that upstream's flags set.
const (
	controllerUser = "eks:vpc-resource-controller"
	clusterName    = "cluster"
	version        = "v1.8.2"
)

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Kube == nil:
		return o, errors.New("options: Kube is missing")
	case o.World == nil:
		return o, errors.New("options: World is missing")
	case o.Scale < 0:
		return o, fmt.Errorf("options: scale %v: a positive number is accepted", o.Scale)
	}
	o.Scale = cmp.Or(o.Scale, 1)
	o.Timing = o.Timing.withDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// scaled converts one of upstream's times to the time it takes here.
func (o Options) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * o.Scale)
}
