package vpcrc

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/fakeaws"
)

// Options configure a controller. Timing and Faults are optional.
type Options struct {
	Objects dynamic.Interface // with an administrator's rights
	World   *fakeaws.World
	Node    string  // to manage
	Scale   float64 // how long one second of upstream lasts here, in seconds
	Timing  Timing
	Faults  Faults
}

// Timing holds the delays that upstream leaves to EC2, before Scale. 0 is the default, a
// negative time means none.
type Timing struct {
	TrunkMetadataAfter time.Duration // from the trunk's attachment to the metadata service; default 2 s
	TrunkDescribeAfter time.Duration // from there to EC2's lists; default none
	BranchAfter        time.Duration // from a pod's binding to its branch ENI; default 500 ms
}

// Faults are independent faults. Others are caused in the World: a type that cannot trunk, a
// node without a free slot. The effects of a fault stay: the controller retries at the next
// change of the Node or of the pod.
type Faults struct {
	TrunkUnauthorized bool // EC2 refuses the trunk: UnauthorizedOperation

	SubnetFull       bool          // EC2 has no address for a branch
	AtCapacity       bool          // the type's limit of branches appears to be reached
	AnnotationDelay  time.Duration // before Scale: 5, 60 or 300 s happen in practice
	AnnotationDenied bool          // the API server rejects the annotation
	AnnotationTwice  bool          // one more branch than requested
	AnnotationVLANID bool          // "vlanID" instead of "vlanId"
	AnnotationNoIPv6 bool          // without the keys for IPv6, as in 2021
	AnnotationCIDR   bool          // subnetCidr belongs to another network
	ReuseVLANs       bool          // the VLAN id of an ended pod is free at once
}

// Upstream's times, before Scale.
const (
	trunkAfter   = 2 * time.Second  // until EC2 has attached a trunk
	cooldown     = time.Minute      // of a branch ENI, the default
	unreadyRetry = time.Second      // a pod whose node is not ready yet
	queueTick    = 30 * time.Second // between two deletions of what has cooled down
	resyncPeriod = 30 * time.Minute // after which dropped jobs are done again
)

// maxRetries is how often a failed job is done again. Its back-off is not scaled: what a test
// sees depends on retries, not on time.
const maxRetries = 5

// Controller is a running controller.
type Controller struct {
	opts   Options
	ctx    context.Context // ends with the controller
	cancel context.CancelFunc
	wg     sync.WaitGroup                                             // all goroutines
	jobs   workqueue.TypedRateLimitingInterface[types.NamespacedName] // pods; without a namespace: the Node

	met bool // the Node has had its CNINode; for reconcileNode, which runs once at a time

	mu       sync.Mutex // guards what follows
	faults   Faults
	instance fakeaws.Instance
	limits   limits.Instance
	network  network
	trunk    string // ENI id
	ready    bool   // the trunk is attached
	used     int    // branches that count against the type's limit
	vlans    [121]bool
	pods     map[types.UID][]branch
	parked   []parked
	events   map[event]recorded
}

// Start runs a controller until Stop. It returns when its watches are in sync.
func Start(ctx context.Context, o Options) (*Controller, error) {
	o.Timing = Timing{
		TrunkMetadataAfter: max(cmp.Or(o.Timing.TrunkMetadataAfter, 2*time.Second), 0),
		TrunkDescribeAfter: max(o.Timing.TrunkDescribeAfter, 0),
		BranchAfter:        max(cmp.Or(o.Timing.BranchAfter, 500*time.Millisecond), 0),
	}
	c := &Controller{opts: o, faults: o.Faults, pods: make(map[types.UID][]branch), events: make(map[event]recorded)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.jobs = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](5*time.Millisecond, time.Second))
	node := func(any) { c.jobs.Add(types.NamespacedName{Name: o.Node}) }
	ofNode := cache.ResourceEventHandlerFuncs{AddFunc: node, UpdateFunc: func(_, now any) { node(now) }}
	synced := []cache.InformerSynced{
		c.watch(nodesResource, "metadata.name", ofNode),
		c.watch(cninodesResource, "metadata.name", ofNode),
		c.watch(podsResource, "spec.nodeName", cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.podChanged(nil, o) },
			UpdateFunc: c.podChanged,
			DeleteFunc: func(o any) {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				c.podChanged(o, nil)
			},
		}),
	}
	if !cache.WaitForCacheSync(c.ctx.Done(), synced...) {
		c.Stop()
		return nil, fmt.Errorf("start resource controller: watch the API server: %w", context.Cause(c.ctx))
	}
	c.wg.Go(c.work)
	c.wg.Go(c.deleteCooled)
	return c, nil
}

// Stop stops the controller. What it made stays.
func (c *Controller) Stop() {
	c.cancel()
	c.jobs.ShutDown()
	c.wg.Wait()
}

// SetFaults replaces all faults.
func (c *Controller) SetFaults(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

func (c *Controller) activeFaults() Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

// watch calls the handler for every object of a kind that belongs to the Node by this field.
func (c *Controller) watch(r schema.GroupVersionResource, field string, handler cache.ResourceEventHandler) cache.InformerSynced {
	of, selector := c.opts.Objects.Resource(r), field+"="+c.opts.Node
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = selector
				return of.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = selector
				return of.Watch(ctx, o)
			},
		},
		ObjectType: &unstructured.Unstructured{}, Handler: handler, ResyncPeriod: c.scaled(resyncPeriod),
	})
	c.wg.Go(func() { informer.RunWithContext(c.ctx) })
	return informer.HasSynced
}

func (c *Controller) podChanged(old, now any) {
	was, _ := into[corev1.Pod](old)
	is, _ := into[corev1.Pod](now)
	if was != nil && (is == nil || is.UID != was.UID) {
		c.release(was.UID)
	}
	switch {
	case is == nil:
	case ended(is):
		c.release(is.UID)
	case wantsBranch(is):
		c.jobs.AddAfter(types.NamespacedName{Namespace: is.Namespace, Name: is.Name}, c.scaled(c.opts.Timing.BranchAfter))
	}
}

// work does all jobs side by side, but those of one object one after the other.
func (c *Controller) work() {
	for {
		k, over := c.jobs.Get()
		if over {
			return
		}
		c.wg.Go(func() {
			defer c.jobs.Done(k)
			do := c.reconcilePod
			if k.Namespace == "" {
				do = c.reconcileNode
			}
			again, err := do(k)
			switch {
			case err != nil && c.jobs.NumRequeues(k) < maxRetries:
				c.jobs.AddRateLimited(k)
				return
			case err == nil && again > 0:
				c.jobs.AddAfter(k, c.scaled(again))
			}
			c.jobs.Forget(k)
		})
	}
}

// scaled converts one of upstream's times to the time it takes here.
func (c *Controller) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * c.opts.Scale)
}

// wait waits for d, before Scale. It returns false if the controller stops.
func (c *Controller) wait(d time.Duration) bool {
	select {
	case <-c.ctx.Done():
		return false
	case <-time.After(max(c.scaled(d), time.Millisecond)):
		return true
	}
}
