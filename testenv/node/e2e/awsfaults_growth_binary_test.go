package e2e_test

import (
	"testing"
	"time"

	"cnictl/testenv/aws/fakeaws"
)

const (
	create = "CreateNetworkInterface"
	attach = "AttachNetworkInterface"
	assign = "AssignPrivateIpAddresses"
	modify = "ModifyNetworkInterfaceAttribute"
)

// forGood is enough failures that the SDK gives up on at least one call: it makes three
// attempts, and the daemon may have two calls of an action in progress.
const forGood = 6

// meet is a rule for an action's first calls; 0 means all.
func meet(action string, calls int, f fakeaws.Fault) fakeaws.Rule {
	return fakeaws.Rule{Action: action, Last: calls, Fault: f}
}

func lost(r fakeaws.Reply) fakeaws.Fault { return fakeaws.Fault{Reply: r, Effect: true} }

// growthFaults are those of TestAWSFault_Growth. The nightly run has more.
var growthFaults = []faultRow{
	{name: "Create hangs once", rules: []fakeaws.Rule{meet(create, 1, fakeaws.Fault{Reply: fakeaws.ReplyHang})}},
	{name: "Create is carried out, its reply lost for good", rules: []fakeaws.Rule{meet(create, forGood, lost(fakeaws.ReplyClosed))}},
	{name: "Create answers garbage", rules: []fakeaws.Rule{meet(create, forGood, lost(fakeaws.ReplyGarbage))}},
	{name: "Attach never completes", most: holdTime, held: true, rules: []fakeaws.Rule{meet(attach, 0, fakeaws.Fault{Hold: fakeaws.HoldAttaching})}},
	{name: "every fifth call fails with 500", rules: []fakeaws.Rule{
		{Action: "*", Probability: 0.2, Seed: 7, Fault: fakeaws.Internal}}},
	{name: "metadata behind EC2", lag: func(w *fakeaws.World) { w.SetMetadataLag(time.Hour) }},
}

// TestAWSFault_Growth starts 12 pods, more than the primary ENI has addresses for, while one
// kind of call fails. The SDK makes three attempts, so one failure is handled by the SDK and
// three by the daemon.
func TestAWSFault_Growth(t *testing.T) {
	t.Parallel()
	runAll(t, growthFaults, faultRow.run)
}

// holdTime is how long attachments are held up: longer than an ADD waits.
const holdTime = 8 * time.Second
