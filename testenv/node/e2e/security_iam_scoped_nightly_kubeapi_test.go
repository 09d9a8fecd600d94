//go:build nightly

package e2e_test

import (
	"maps"
	"slices"
	"syscall"
	"testing"

	"cnictl/testenv/aws/fakeaws"
)

// TestIAM_Scoped: with a policy scoped to its cluster, a node tags its primary interface, grows,
// shrinks and starts again, and EC2 refuses nothing.
func TestIAM_Scoped(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]permissionRow{
		"aws-node-ipv4-scoped": {policy: "aws-node-ipv4-scoped", scene: ipv4Scene, env: small, provoke: (*member).emptied, fixed: (*member).shrunk},
		"aws-node-ipv6-scoped": {policy: "aws-node-ipv6-scoped", scene: excludedScene, env: ipv6Env, before: (*member).holds6, provoke: (*member).mustAddMore, fixed: (*member).freed6},
	}, func(t *testing.T, row permissionRow) {
		c, spec := row.scene(t)
		spec.Type, spec.Tags = "t3.medium", map[string]string{"kubernetes.io/cluster/" + scopedCluster: "owned"}
		m := c.join(spec)
		c.refusing = true // this test grants its own policy, and checks it
		c.grant(m.InstanceID, row.policy)
		if row.before != nil {
			row.before(m)
		}
		env := map[string]string{"CLUSTER_NAME": scopedCluster, "ADDITIONAL_ENI_TAGS": `{"team":"network"}`}
		maps.Copy(env, row.env)
		m.start(env)
		row.provoke(m)
		c.within(shrinkTime, "the pool is as it should be", func() bool { return row.fixed(m) })
		c.kill(m.Node, syscall.SIGTERM)
		m.start(env)
		m.mustAddMore()
		c.within(shrinkTime, "all interfaces have the cluster's tag, and those of the settings", m.tagged)
		for _, action := range []string{"ec2:CreateNetworkInterface", "ec2:AttachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute", "ec2:CreateTags"} {
			m.succeeded(action)
		}
		if denied := c.world.ActionsDenied(m.InstanceID); len(denied) > 0 {
			t.Errorf("refused: %q", denied)
		}
	})
}

// tagged reports whether all interfaces of the member have the tags that its daemon was given.
func (m *member) tagged() bool {
	return !slices.ContainsFunc(m.enis(), func(e fakeaws.ENI) bool {
		return e.Tags["cluster.k8s.amazonaws.com/name"] != scopedCluster || e.Tags["team"] != "network"
	})
}
