package e2e_test

import (
	"maps"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// TestFullNode_RollingUpdate replaces the pods of a node that is full by max-pods. Two of these
// pods have no address of the pool, like host-network pods on any node. The
// cooldown is longer than the test, so an ADD that waited for it would fail.
func TestFullNode_RollingUpdate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		instanceType string
		maxPods      int
		env          map[string]string
		first        int  // pods that are replaced before all others
		quiet        bool // replacing them must not change EC2
	}{
		{"default targets", "m5.4xlarge", 60, nil, 20, true},
		{"default targets, max-pods is what two ENIs hold", "m5.4xlarge", 58, nil, 4, false},
		{"WARM_IP_TARGET", "m5.4xlarge", 30, map[string]string{"WARM_IP_TARGET": "1"}, 1, false},
		{"prefixes", "m5.large", 30, map[string]string{"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}, 4, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, fakeaws.Options{Latency: fakeaws.RealisticLatency()})
			m := c.join(fakeaws.InstanceSpec{Type: row.instanceType}, allows(row.maxPods))
			env := map[string]string{"IP_COOLDOWN_PERIOD": "600"}
			maps.Copy(env, row.env)
			m.start(env)
			m.maxPods(row.maxPods, "node")
			pods := c.mustAdd(m.Node, "old", row.maxPods-2, 20)
			c.settled(m.Node)

			before := c.calls()
			c.del(m.Node, pods[:row.first], row.first)
			took := testenv.Took(func() { pods = append(pods[row.first:], c.mustAdd(m.Node, "first", row.first, row.first)...) })
			if after := c.calls(); row.quiet && after.growth() > before.growth() {
				t.Errorf("the pool has no address for %d pods that replace others: %s, then %s", row.first, before, after)
			}
			t.Logf("%d pods replaced in %.2f s", row.first, took.Seconds())

			c.del(m.Node, pods, 20)
			took = testenv.Took(func() { c.mustAdd(m.Node, "new", row.maxPods-2, 20) })
			t.Logf("all %d pods replaced in %.2f s, %s", row.maxPods-2, took.Seconds(), c.calls())
		})
	}
}
