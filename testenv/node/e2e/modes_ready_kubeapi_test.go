package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/testenv/aws/fakeaws"
)

// TestModes_Readiness: with CNI_READY_WITH_ADDRESSES the health service of the node's name
// reports serving while pods can get addresses. The health of the process itself, and without the
// setting both, report serving from the start, like upstream.
func TestModes_Readiness(t *testing.T) {
	t.Parallel()
	const service = "grpc.health.v1.aws-node"
	type row struct {
		env   []string
		edit  func(*corev1.Node, string)
		hold  func(*cluster)          // before the start: makes addresses unavailable
		fix   func(*cluster, *member) // nil if there is no fault
		still bool                    // ready despite the fault
	}
	full := func(c *cluster) {
		if _, err := c.world.Occupy(c.subnet.ID, c.subnet.Free); err != nil {
			c.t.Fatal(err)
		}
	}
	vacate := func(c *cluster, _ *member) {
		if err := c.world.Vacate(c.subnet.ID); err != nil {
			c.t.Fatal(err)
		}
	}
	rows := map[string]row{
		"addresses":   {env: []string{"CNI_READY_WITH_ADDRESSES=true"}},
		"full subnet": {env: []string{"CNI_READY_WITH_ADDRESSES=true"}, hold: full, fix: vacate},
		"no ENIConfig": {env: []string{"CNI_READY_WITH_ADDRESSES=true", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true"},
			edit: func(n *corev1.Node, name string) { annotated(name)(n) }, hold: func(*cluster) {},
			fix: func(c *cluster, _ *member) { c.eniConfig(c.namespace, c.subnet.ID) }},
		"nothing attached": {env: []string{"CNI_READY_WITH_ADDRESSES=true", "DISABLE_NETWORK_RESOURCE_PROVISIONING=true"}, hold: func(*cluster) {},
			fix: func(c *cluster, m *member) {
				if _, err := c.world.Assign(m.enis()[0].ID, fakeaws.AssignSpec{Count: 1}); err != nil {
					c.t.Fatal(err)
				}
			}},
		"as upstream": {hold: full, still: true},
	}
	rowsAtOnce(t, rows, func(t *testing.T, r row) {
		c := newCluster(t, fakeaws.Options{})
		m := c.join(fakeaws.InstanceSpec{Type: "t3.small"}, func(n *corev1.Node) {
			if r.edit != nil {
				r.edit(n, c.namespace)
			}
		})
		if r.hold != nil {
			r.hold(c)
		}
		m.start(with(map[string]string{"CNI_ADD_WAIT": "1s"}, r.env...))
		if !m.probe("") {
			t.Error("the daemon serves, and its health service says it does not")
		}
		if r.hold != nil {
			if got := m.addMore(); got.Success {
				t.Fatalf("%+v although there is nothing", got)
			}
			if got := m.probe(service); got != r.still {
				t.Errorf("ready: %v, want %v", got, r.still)
			}
			if !m.probe("") {
				t.Error("the process serves no more")
			}
		}
		if r.still {
			return
		}
		if r.fix != nil {
			r.fix(c, m)
		}
		c.within(noticedWithin, "readiness", func() bool { return m.probe(service) })
		if r.hold == nil {
			// A full node is ready.
			for m.addMore().Success {
			}
			if !m.probe(service) {
				t.Error("a full node is not ready")
			}
		}
	})
}
