package fakeaws

import "cnictl/testenv/aws/ec2model"

// Throttle holds EC2's request limits. Each action has a separate bucket, of its class's size,
// that all instances share: a world is one account in one region. An action's unfiltered calls
// have another bucket.
type Throttle struct {
	Describe   ec2model.Limit // non-mutating actions
	Unfiltered ec2model.Limit // non-mutating, without ids, filters or paging
	Mutating   ec2model.Limit
	Actions    map[string]ec2model.Limit // figures of single actions, before the classes
}

// AccountBuckets returns the values of AWS's "Request throttling for the Amazon EC2
// API" for an account and region.
func AccountBuckets() *Throttle {
	return &Throttle{Describe: ec2model.Describe, Unfiltered: ec2model.Unfiltered, Mutating: ec2model.Mutating}
}

func (t *Throttle) classOf(action string, mutating, unfiltered bool) (key string, l ec2model.Limit) {
	if l, ok := t.Actions[action]; ok {
		return action, l
	}
	switch {
	case mutating:
		return action, t.Mutating
	case unfiltered:
		return action + "/unfiltered", t.Unfiltered
	}
	return action, t.Describe
}

// admit takes a token for a call if limits are on.
func (w *World) admit(action string, mutating, unfiltered bool) error {
	return locked(&w.wire, func() error {
		t := w.wire.throttle
		if t == nil {
			return nil
		}
		now := w.opts.Now()
		key, size := t.classOf(action, mutating, unfiltered)
		b := w.wire.buckets[key]
		if b == nil {
			b = ec2model.NewBucket(size, now)
			w.wire.buckets[key] = b
		}
		if !b.Take(now) {
			return fail(codeThrottled, "Request limit exceeded.")
		}
		return nil
	})
}
