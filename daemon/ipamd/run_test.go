package ipamd

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// tagging is an EC2 that only tags.
type tagging struct {
	keeper.EC2
	tagged func()
}

func (e tagging) TagENI(context.Context, ipam.ENIID, map[string]string) error {
	e.tagged()
	return nil
}

// TestShutdown_BeginsNothing ends daemons whose every task sends a message that begins the next
// one: none starts while the last one ends, or after the wait for them.
func TestShutdown_BeginsNothing(t *testing.T) {
	t.Parallel()
	const instance = "i-0123456789abcdef0"
	for range 200 {
		l := newLonely(t, func(n *node) { n.config.WarmENI, n.identity.InstanceID = 0, instance })
		o := l.owner
		ops, end := newOperations(t.Context())
		var looks, ran atomic.Int64
		look := func() {
			// Each time EC2 shows an ENI that the book lacks.
			subnet := l.node.identity.SubnetID
			o.deliver(keeper.Observed{AskedEC2: true, ENIs: []resync.ENI{
				{ID: "eni-primary", SubnetID: subnet, AttachmentID: "eni-attach-0", AttachmentStatus: resync.AttachmentAttached},
				{ID: ipam.ENIID(fmt.Sprint("eni-", looks.Add(1))), SubnetID: subnet, Device: 2, PrimaryIP: netip.MustParseAddr("10.0.0.5"),
					AttachmentID: "eni-attach-1", AttachmentStatus: resync.AttachmentAttached, DeleteOnTermination: true,
					Tags: map[string]string{resync.TagInstanceID: instance}},
			}})
		}
		exec := &executor{
			EC2: tagging{tagged: look}, post: o.deliver, podsWait: o.podsWait, metrics: l.metrics,
			spawn: func(task func(context.Context)) {
				ops.spawn(func(ctx context.Context) {
					task(ctx)
					ran.Add(1)
				})
			},
		}
		l.begin = func(task keeper.Task) {
			if _, ok := task.(keeper.TagTask); ok {
				exec.Begin(task)
			}
		}
		stop := make(chan struct{})
		var owner sync.WaitGroup
		owner.Go(func() { o.run(stop) })
		look()
		for ran.Load() < 3 {
			if _, ok := ask(o, func(*keeper.Keeper, time.Time) int { return 0 }); !ok {
				t.Fatal("the owner ended")
			}
		}
		o.deliver(keeper.Terminate{}) // as serve does
		ops.wait()
		before := ran.Load()
		if _, ok := ask(o, func(*keeper.Keeper, time.Time) int { return 0 }); !ok {
			t.Fatal("the owner ended before it was stopped")
		}
		close(stop)
		owner.Wait()
		if n := ran.Load() - before; n > 0 {
			t.Fatalf("%d tasks ran after the wait for them", n)
		}
		end()
	}
}

// TestOperations_StartWhileWaiting: work that is started by anything else, like the end of a request
// that was cut off, is waited for or does not run.
func TestOperations_StartWhileWaiting(t *testing.T) {
	t.Parallel()
	for range 200 {
		ops, end := newOperations(t.Context())
		var started, ran atomic.Int64
		var starters sync.WaitGroup
		for range 4 {
			starters.Go(func() {
				for range 20 {
					started.Add(1)
					ops.spawn(func(context.Context) { ran.Add(1) })
				}
			})
		}
		for started.Load() == 0 {
			if t.Context().Err() != nil {
				return
			}
		}
		ops.wait()
		before := ran.Load()
		starters.Wait()
		if n := ran.Load(); n != before {
			t.Fatalf("%d ran after the wait", n-before)
		}
		end()
	}
}
