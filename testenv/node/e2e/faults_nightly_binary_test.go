//go:build nightly

package e2e_test

import (
	"testing"
	"time"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// TestScaleUp_Faults starts 40 pods, 20 at a time, while EC2 misbehaves once. It logs the
// duration beside upstream's (docs/performance.md).
func TestScaleUp_Faults(t *testing.T) {
	t.Parallel()
	throttled := fakeaws.Fault{Code: "RequestLimitExceeded", Message: "Request limit exceeded.", Status: 503}
	exhausted := fakeaws.Fault{Code: "InsufficientFreeAddressesInSubnet", Message: "insufficient free addresses", Status: 400}
	asValue := fakeaws.Fault{Code: "InvalidParameterValue", Message: "There aren't sufficient free Ipv4 addresses or prefixes", Status: 400}
	const most = 90 * time.Second // on a busy machine; alone, each takes 4 to 8 s
	for _, row := range []struct {
		name     string
		fault    fakeaws.FaultFunc
		options  fakeaws.Options
		link     time.Duration
		original string
		// calls is the maximum number of calls of one action
		action string
		calls  int
	}{
		{"subnet exhausted once", fakeaws.FailCalls("CreateNetworkInterface", 1, 1, exhausted), fakeaws.Options{Latency: fakeaws.RealisticLatency()}, 0,
			"123.5 s, possible 4 s", "CreateNetworkInterface", 5},
		{"subnet exhausted once, said otherwise", fakeaws.FailCalls("CreateNetworkInterface", 1, 1, asValue), fakeaws.Options{Latency: fakeaws.RealisticLatency()}, 0,
			"", "CreateNetworkInterface", 5},
		// Each of our attach calls is up to three attempts of the SDK.
		{"attach throttled three times", fakeaws.FailCalls("AttachNetworkInterface", 1, 3, throttled),
			fakeaws.Options{AttachDelay: 2 * time.Second, MetadataLag: time.Second}, 0, "17 s, possible 8 s", "CreateNetworkInterface", 3},
		{"link a second late", nil, fakeaws.Options{Latency: fakeaws.RealisticLatency()}, time.Second, "", "CreateNetworkInterface", 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLabWithLinks(t, row.options, row.link)
			l.world.SetFaults(row.fault)
			n := l.boot("m5.4xlarge", map[string]string{"CNI_ADD_WAIT": "60s"})
			var pods []*node.Pod
			testenv.Within(t, most, "adding 40 pods", func() {
				took := testenv.Took(func() { pods = l.mustAdd(n, "p", 40, 20) })
				t.Logf("40 pods in %.2f s, %s (original: %s)", took.Seconds(), l.calls(), row.original)
			})
			l.settled(n)
			if got := l.calls().by[row.action]; got > row.calls {
				t.Errorf("%d calls of %s, want at most %d", got, row.action, row.calls)
			}
			l.del(n, pods, 20)
			l.nothingLeft(n)
			if left := l.unattached(); len(left) > 0 {
				t.Errorf("ENIs without an owner: %v", left)
			}
		})
	}
}

// TestEC2_IsNotAskedInALoop makes EC2 refuse permanently and counts the calls in two seconds.
func TestEC2_IsNotAskedInALoop(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ action, code, message string }{
		{"AssignPrivateIpAddresses", "PrivateIpAddressLimitExceeded", "The maximum number of addresses has been reached"},
		{"AssignPrivateIpAddresses", "InsufficientFreeAddressesInSubnet", "insufficient free addresses"},
		{"CreateNetworkInterface", "UnauthorizedOperation", "You are not authorized"},
		{"AttachNetworkInterface", "AttachmentLimitExceeded", "Interface count exceeds the limit"},
	} {
		t.Run(row.action+" "+row.code, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, fakeaws.Options{})
			l.world.SetFaults(fakeaws.FailCalls(row.action, 1, 1<<30, fakeaws.Fault{Code: row.code, Message: row.message, Status: 400}))
			n := l.boot("t3.small", map[string]string{"CNI_ADD_WAIT": "2s", "WARM_ENI_TARGET": "2"})
			_, failed := add(n, "p", 12, 4)
			if len(failed) == 0 {
				t.Fatal("nothing failed")
			}
			c := l.calls()
			t.Logf("%d of 12 ADDs failed, %s; %v", len(failed), c, failed[0])
			if c.by[row.action] > 8 {
				t.Errorf("%s was called %d times, want a back-off", row.action, c.by[row.action])
			}
			if c.total > 40 {
				t.Errorf("%d EC2 calls", c.total)
			}
		})
	}
}
