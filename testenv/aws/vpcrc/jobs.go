package vpcrc

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// jobs is a work queue: each key is processed by one worker at a time, keys in parallel.
type jobs[K comparable] struct {
	kind  string
	r     *run
	queue workqueue.TypedRateLimitingInterface[K]
	do    func(context.Context, K) (again time.Duration, err error)
}

// newJobs creates a queue that runs do for each key. A failed job is retried up to maxRetries
// times and then dropped. If do returns a time, before Scale, the job is repeated after it.
func newJobs[K comparable](kind string, r *run, do func(context.Context, K) (time.Duration, error)) *jobs[K] {
	return &jobs[K]{kind, r, workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstBackoff, maxBackoff)), do}
}

func (j *jobs[K]) add(k K)                           { j.queue.Add(k) }
func (j *jobs[K]) addAfter(k K, after time.Duration) { j.queue.AddAfter(k, after) }
func (j *jobs[K]) stop()                             { j.queue.ShutDown() }

func (j *jobs[K]) start() {
	j.r.wg.Go(func() {
		for {
			k, over := j.queue.Get()
			if over {
				return
			}
			j.r.wg.Go(func() { j.work(k) })
		}
	})
}

func (j *jobs[K]) work(k K) {
	defer j.queue.Done(k)
	again, err := j.do(j.r.ctx, k)
	switch {
	case j.r.ctx.Err() != nil:
	case err == nil && again == 0:
		j.queue.Forget(k)
	case err == nil:
		j.queue.Forget(k)
		j.queue.AddAfter(k, j.r.opts.scaled(again))
	case j.queue.NumRequeues(k) < maxRetries:
		j.r.log.Debug("job failed, it is done again", "kind", j.kind, "key", k, "error", err)
		j.queue.AddRateLimited(k)
	default:
		j.r.log.Warn("job dropped", "kind", j.kind, "key", k, "error", err)
		j.queue.Forget(k)
	}
}
