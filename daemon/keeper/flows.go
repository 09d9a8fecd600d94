package keeper

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"cnictl/daemon/ipam"
)

// flowPasses is how often the connection tracking entries of an address are deleted after its
// pod ended: at once, and before its cooldown ends.
const flowPasses = 2

const (
	// flowsEvery is the shortest pause between two passes.
	flowsEvery = time.Second
	// flowsShare limits passes to about a twentieth of a processor: one reads the node's whole
	// table, which takes most of a second where it has 200,000 entries. The pause between them is at
	// most a quarter of the cooldown, so they take more with larger tables or a shorter cooldown.
	flowsShare = 20
	// leftFlowsLimit bounds the pass of a start, for which serving waits.
	leftFlowsLimit = 2 * time.Second
)

// flows is the state of the passes over the kernel's connection tracking.
type flows struct {
	look    time.Time // when an address may be due; zero if none is cooling
	began   time.Time // of the pass in progress; zero if none is
	next    time.Time // when the next one may begin
	pause   time.Duration
	failing bool // the last one failed
}

// due returns when a pass may begin; zero if an event comes first.
func (f *flows) due() time.Time {
	if f.look.IsZero() || !f.began.IsZero() {
		return time.Time{}
	}
	return later(f.look, f.next)
}

// lead is how long before the end of a cooldown the last pass is due: long enough to wait for
// a pass that has just begun, and for the pause after it.
func (f *flows) lead() time.Duration { return 2 * max(f.pause, flowsEvery) }

// deleteFlows begins a pass if an address is due: one for all of them. Addresses whose DEL is
// not on disk wait, since it may still be reverted.
func (k *Keeper) deleteFlows(now time.Time) {
	f := &k.flows
	if at := f.due(); k.terminating || at.IsZero() || at.After(now) {
		return
	}
	var due []netip.Addr
	due, f.look = k.book.FlowsDue(now, f.lead(), func(a netip.Addr) bool { return k.unsettled[a] })
	if len(due) > 0 {
		f.began = now
		k.begin(FlowsTask{due})
	}
}

// FlowsTask deletes the connection tracking entries of addresses.
type FlowsTask struct{ Addresses []netip.Addr }

func (t FlowsTask) run(ctx context.Context, c Calls) {
	of := make(map[netip.Addr]bool, len(t.Addresses))
	for _, a := range t.Addresses {
		of[a] = true
	}
	n, err := c.DeleteFlows(ctx, func(a netip.Addr) bool { return of[a] })
	c.Post(FlowsDone{t.Addresses, n, err})
}

// FlowsDone reports the end of a pass.
type FlowsDone struct {
	Addresses []netip.Addr
	Deleted   int // entries
	Err       error
}

func (m FlowsDone) handle(k *Keeper, now time.Time) {
	f := &k.flows
	took := now.Sub(f.began)
	f.pause = max(flowsEvery, min(flowsShare*took, k.policy.Cooldown/4))
	f.next = now.Add(f.pause)
	counted := ipam.FlowsDeleted{Addresses: m.Addresses, Began: f.began}
	if m.Err != nil {
		counted.Again = f.next
	}
	k.apply(now, counted)
	f.began, f.look = time.Time{}, now
	k.recordFlows(now, len(m.Addresses), m.Deleted, took, m.Err)
}

// recordFlows records a pass. One that the end of the daemon cut short is no failure.
func (k *Keeper) recordFlows(now time.Time, addresses, deleted int, took time.Duration, err error) {
	switch {
	case err == nil:
		k.record(now, FlowsDeleted{Addresses: addresses, Entries: deleted, Took: took})
	case !k.terminating:
		k.record(now, FlowsKept{Entries: deleted, Err: err, Again: k.flows.failing})
	}
	k.flows.failing = err != nil
}

// deleteLeftFlows deletes the entries of all addresses without a pod when the daemon starts:
// what an earlier one knew about cooldowns is lost. It stops after leftFlowsLimit, and what it has
// not read by then stays.
func (k *Keeper) deleteLeftFlows(ctx context.Context, c Calls, routed func(netip.Addr) bool) {
	began := c.Now()
	ctx, done := c.Lasting(ctx, leftFlowsLimit)
	defer done()
	n, err := c.DeleteFlows(ctx, func(a netip.Addr) bool { return k.book.Spare(a) && !routed(a) })
	if err != nil && c.Now().Sub(began) >= leftFlowsLimit {
		err = fmt.Errorf("stopped after %v at the start, so that pods need not wait longer: %w", leftFlowsLimit, err)
	}
	k.recordFlows(c.Now(), 0, n, c.Now().Sub(began), err)
}
