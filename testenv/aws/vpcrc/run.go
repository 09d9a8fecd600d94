package vpcrc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"cnictl/testenv/aws/fakeaws"
)

// run is what a controller does.
type run struct {
	*Controller
	world  *fakeaws.World
	log    *slog.Logger
	ctx    context.Context // ends with the run
	cancel context.CancelFunc
	wg     sync.WaitGroup // all goroutines

	nodeCache, podCache, cninodeCache cache.SharedIndexInformer
	nodeJobs, cninodeJobs             *jobs[string]
	podJobs                           *jobs[types.NamespacedName]

	mu    sync.Mutex // guards what follows, and the nodes
	nodes map[string]*node
	met   map[string]bool // Nodes that have had a CNINode
}

func newRun(ctx context.Context, c *Controller) *run {
	r := &run{Controller: c, world: c.opts.World, log: c.opts.Log, nodes: make(map[string]*node), met: make(map[string]bool)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.nodeJobs = newJobs("node", r, r.reconcileNode)
	r.cninodeJobs = newJobs("cninode", r, r.reconcileCNINode)
	r.podJobs = newJobs("pod", r, r.reconcilePod)
	r.nodeCache = r.watch(nodesResource, as[corev1.Node])
	r.podCache = r.watch(podsResource, as[corev1.Pod])
	r.cninodeCache = r.watch(cninodesResource, nil)
	return r
}

// as converts the objects of a cache to their Go type.
func as[T any](o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	return into[T](u)
}

func (r *run) watch(res schema.GroupVersionResource, transform cache.TransformFunc) cache.SharedIndexInformer {
	of := r.api.of(res, "")
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	// Both fail only after the informer has started.
	_ = informer.SetTransform(transform)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil {
			r.log.Warn("watch ended, restarting it", "resource", res.Resource, "error", err)
		}
	})
	return informer
}

// start starts all watches.
func (r *run) start() error {
	r.handle(r.podCache, r.podChanged)
	r.handle(r.nodeCache, r.nodeChanged)
	r.handle(r.cninodeCache, r.cninodeChanged)
	for _, i := range []cache.SharedIndexInformer{r.podCache, r.nodeCache, r.cninodeCache} {
		r.wg.Go(func() { i.RunWithContext(r.ctx) })
		if !cache.WaitForCacheSync(r.ctx.Done(), i.HasSynced) {
			return fmt.Errorf("watch the API server: %w", errors.Join(r.ctx.Err(), context.Cause(r.ctx)))
		}
	}
	r.nodeJobs.start()
	r.cninodeJobs.start()
	r.podJobs.start()
	r.wg.Go(r.resync)
	return nil
}

func (r *run) stop() {
	r.cancel()
	r.nodeJobs.stop()
	r.cninodeJobs.stop()
	r.podJobs.stop()
	r.wg.Wait()
}

// handle calls f with the old and the new object, either of which is nil if there is none.
func (r *run) handle(i cache.SharedIndexInformer, f func(old, now any)) {
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only after the informer has stopped
		AddFunc:    func(o any) { f(nil, o) },
		UpdateFunc: f,
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			f(o, nil)
		},
	})
}

// looksAfter reports whether this controller manages a Node.
func (r *run) looksAfter(node string) bool {
	return r.opts.Nodes == nil || slices.Contains(r.opts.Nodes, node)
}

func (r *run) nodeChanged(old, now any) {
	for _, o := range []any{old, now} {
		if n, ok := o.(*corev1.Node); ok && r.looksAfter(n.Name) {
			r.nodeJobs.add(n.Name)
		}
	}
}

// cninodeChanged also triggers the node's job, which finds its CNINode only through the owner.
func (r *run) cninodeChanged(old, now any) {
	for _, o := range []any{old, now} {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || !r.looksAfter(u.GetName()) {
			continue
		}
		r.cninodeJobs.add(u.GetName())
		if owner := metav1.GetControllerOfNoCopy(u); owner != nil && owner.Kind == "Node" && r.looksAfter(owner.Name) {
			r.nodeJobs.add(owner.Name)
		}
	}
}

func (r *run) podChanged(old, now any) {
	was, _ := old.(*corev1.Pod)
	is, _ := now.(*corev1.Pod)
	if was != nil && (is == nil || is.UID != was.UID) {
		r.release(was.UID)
	}
	switch {
	case is == nil || is.Spec.NodeName == "" || !r.looksAfter(is.Spec.NodeName):
	case ended(is):
		r.release(is.UID)
	case branchesWanted(is) > 0 && is.Annotations[podENIKey] == "":
		r.podJobs.addAfter(types.NamespacedName{Namespace: is.Namespace, Name: is.Name}, r.opts.scaled(r.opts.Timing.BranchAfter))
	}
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// branchesWanted sums the requests of all containers; init containers do not count.
func branchesWanted(p *corev1.Pod) int {
	n := 0
	for _, c := range p.Spec.Containers {
		q := c.Resources.Requests[podENIKey]
		n += int(q.Value())
	}
	return n
}

// resync processes everything again, which gives dropped jobs another chance.
func (r *run) resync() {
	for r.wait(resyncPeriod) {
		for _, o := range r.nodeCache.GetStore().List() {
			r.nodeChanged(nil, o)
		}
		for _, o := range r.podCache.GetStore().List() {
			r.podChanged(nil, o)
		}
	}
}

// wait waits for d, before Scale. It returns false if the run is over.
func (r *run) wait(d time.Duration) bool {
	t := time.NewTimer(max(r.opts.scaled(d), time.Millisecond))
	defer t.Stop()
	select {
	case <-r.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (r *run) nodeObject(name string) *corev1.Node {
	o, _, _ := r.nodeCache.GetStore().GetByKey(name) // an in-memory store does not fail
	n, _ := o.(*corev1.Node)
	return n
}

func (r *run) podObject(k types.NamespacedName) *corev1.Pod {
	o, _, _ := r.podCache.GetStore().GetByKey(k.String())
	p, _ := o.(*corev1.Pod)
	return p
}
