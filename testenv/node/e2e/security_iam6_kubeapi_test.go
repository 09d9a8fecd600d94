package e2e_test

import (
	"maps"
	"slices"
	"testing"

	"cnictl/testenv/fakeaws"
)

// TestIAM_IPv6: on an IPv6 node, what TestIAM_EachActionIsNeeded shows of the others for
// the action that all its pods depend on.
func TestIAM_IPv6(t *testing.T) {
	t.Parallel()
	const action = "ec2:AssignIpv6Addresses"
	c, subnet := ipv6Cluster(t, nil)
	c.refusing = true
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, IPv6: true})
	m.roleWithout("aws-node-ipv6", action)
	env := map[string]string{"CNI_ADD_WAIT": "2s"}
	maps.Copy(env, ipv6Env)
	m.start(env)
	m.runsDry(action)
	m.tellsOf(action)
	m.quiet(action)
	c.grant(m.InstanceID, "aws-node-ipv6")
	c.untilWithin(shrinkTime, "pods get addresses again", func() bool { return m.addMore().Success })
	if denied := c.world.ActionsDenied(m.InstanceID); !slices.Equal(denied, []string{action}) {
		t.Errorf("refused were %v, want %s alone", denied, action)
	}
}
