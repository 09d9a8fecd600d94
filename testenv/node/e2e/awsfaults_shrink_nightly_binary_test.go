//go:build nightly

package e2e_test

import (
	"testing"
	"time"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

const (
	unassign  = "UnassignPrivateIpAddresses"
	detach    = "DetachNetworkInterface"
	deleteENI = "DeleteNetworkInterface"
)

// TestAWSFault_Shrinkage deletes twelve pods while one kind of releasing call fails. After
// the fault the pool shrinks to its target, the second ENI is gone, and the daemon's state
// equals EC2's.
func TestAWSFault_Shrinkage(t *testing.T) {
	t.Parallel()
	refused := fakeaws.Fault{Code: "OperationNotPermitted", Message: "The attachment cannot be detached now."}
	runAll(t, []faultRow{
		{name: "Detach is refused", rules: []fakeaws.Rule{meet(detach, 2, refused)}},
		{name: "Detach hangs in detaching", rules: []fakeaws.Rule{meet(detach, 1, fakeaws.Fault{Hold: fakeaws.HoldDetaching})}},
		{name: "Detach is carried out, its reply lost for good", rules: []fakeaws.Rule{meet(detach, 3, lost(fakeaws.ReplyClosed))}},
		{name: "Detach fails with 500", rules: []fakeaws.Rule{meet(detach, 3, fakeaws.Internal)}},
		{name: "Delete is carried out, its reply lost for good", rules: []fakeaws.Rule{meet(deleteENI, 3, lost(fakeaws.ReplyClosed))}},
		{name: "Delete fails with 503", rules: []fakeaws.Rule{meet(deleteENI, 6, fakeaws.Unavailable)}},
		{name: "Delete hangs", rules: []fakeaws.Rule{meet(deleteENI, 1, fakeaws.Fault{Reply: fakeaws.ReplyHang})}},
		{name: "Unassign is carried out, its reply lost for good", rules: []fakeaws.Rule{meet(unassign, 3, lost(fakeaws.ReplyClosed))}},
		{name: "Unassign gives back fewer", rules: []fakeaws.Rule{meet(unassign, 1, fakeaws.Fault{AtMost: 1})}},
		{name: "Unassign fails with 500", rules: []fakeaws.Rule{meet(unassign, 3, fakeaws.Internal)}},
		{name: "metadata still shows what is gone", lag: func(w *fakeaws.World) { w.SetMetadataLag(time.Hour) }},
	}, faultRow.shrink)
}

// shrinkTime bounds the wait until an ENI is released: an ENI is kept for its first minute, and
// shrinking pauses half a minute between steps.
const shrinkTime = 3 * time.Minute

// shrink starts pods, deletes them during the fault, ends the fault as soon as every rule has
// applied, and waits for the small pool.
func (row faultRow) shrink(t *testing.T) {
	l := newLab(t, fakeaws.Options{})
	n := l.bootFaulty("m5.large", map[string]string{"IP_COOLDOWN_PERIOD": "1", "WARM_IP_TARGET": "1", "CNI_ADD_WAIT": "60s"})
	pods, failed := l.addAsKubelet(n, "p", 12, 12, testenv.Left(t))
	l.explained(failed)
	l.settled(n)
	l.breakEC2(row.rules...)
	if row.lag != nil {
		row.lag(l.world)
	}
	l.del(n, pods, 4)
	l.within(shrinkTime, "the fault", func() bool { return row.met(l.world) })
	l.world.RemoveFaults()
	// A pod gets an address of the primary ENI, whose pool may shrink around it, unless all of that
	// still cool down.
	testenv.Eventually(l.t, "no address that cools down", func() bool { c := l.card(n).Cooling; return c == nil || *c == 0 })
	kept, failed := l.addAsKubelet(n, "q", 1, 1, testenv.Left(t))
	l.explained(failed)
	l.ownAddresses(n, kept)
	l.endFaults()
	l.converged(n, convergence)
	l.within(shrinkTime, "a pool as small as its target", func() bool { return len(l.world.ENIsOf(n.InstanceID)) == 1 })
	l.converged(n, convergence)
	l.del(n, kept, 1)
	l.nothingLeft(n)
}

// met reports whether each rule has applied to all its calls. A row without rules is met
// when a second ENI is gone.
func (row faultRow) met(w *fakeaws.World) bool {
	for _, r := range row.rules {
		n := 0
		for _, c := range w.Calls() {
			if c.Action == r.Action && c.Fault != "" {
				n++
			}
		}
		// The SDK may stop before a rule does.
		if n == 0 || r.Reply != fakeaws.ReplyHang && n < r.Last {
			return false
		}
	}
	return len(row.rules) > 0 || w.CallCounts()[deleteENI] > 0
}
