package vpcapi_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/deploy"
	"cnictl/testenv/aws/fakeaws"
)

// The policies in deploy/ allow each call of the client in its mode, and nothing that it
// cannot need. Those scoped to a cluster do so for an interface whose tags the client sets itself.
func TestIAM_PoliciesAreWhatIsUsed(t *testing.T) {
	t.Parallel()
	for name, life := range map[string]func(context.Context, *node) error{
		"aws-node-ipv4": life4, "aws-node-ipv4-scoped": life4, "aws-node-ipv6": life6, "aws-node-ipv6-scoped": life6,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := deploy.IAM(name)
			if err != nil {
				t.Fatal(err)
			}
			n := dualStack(t)
			if err := n.world.SetPolicy(n.instance.ID, n.world.Filled(document, "c1", n.instance.VPCID)); err != nil {
				t.Fatal(err)
			}
			if err := life(t.Context(), n); err != nil {
				t.Error(err)
			}
			granted, err := fakeaws.PolicyActions(document)
			if err != nil {
				t.Fatal(err)
			}
			if used := n.world.ActionsUsed(n.instance.ID); !slices.Equal(used, granted) {
				t.Errorf("used    %q\ngranted %q", used, granted)
			}
			if denied := n.world.ActionsDenied(n.instance.ID); len(denied) > 0 {
				t.Errorf("denied %q", denied)
			}
		})
	}
}

func life4(ctx context.Context, n *node) error {
	return lifeWith(ctx, n, vpcapi.CreateENI{SubnetID: n.subnet.ID, Prefixes: 1}, func(e vpcapi.ENI) ([]netip.Prefix, error) {
		more, err := n.AssignPrefixes(ctx, e.ID, 1)
		return append(more, e.Prefixes...), err
	})
}

func life6(ctx context.Context, n *node) error {
	return lifeWith(ctx, n, vpcapi.CreateENI{SubnetID: n.subnet.ID, IPv6: true}, func(e vpcapi.ENI) ([]netip.Prefix, error) {
		more, err := n.AssignIPv6Prefix(ctx, e.ID)
		return []netip.Prefix{more}, err
	})
}

// lifeWith creates an ENI, uses it and deletes it, with every call except those of assign.
func lifeWith(ctx context.Context, n *node, s vpcapi.CreateENI, assign func(vpcapi.ENI) ([]netip.Prefix, error)) error {
	var at string
	var e vpcapi.ENI
	var cidrs []netip.Prefix
	for _, step := range []func() error{
		func() error { _, err := n.DescribeSubnets(ctx); return err },
		func() error { _, err := n.DescribeInstanceType(ctx, "m5.large"); return err },
		func() error { _, err := n.DescribeOrphans(ctx); return err },
		func() error { _, err := n.DescribeLeaked(ctx); return err },
		func() (err error) { e, err = n.CreateENI(ctx, s); return err },
		func() (err error) { at, err = n.AttachENI(ctx, e.ID, 0, 1); return err },
		func() error { return n.SetDeleteOnTermination(ctx, e.ID, at) },
		func() error { return n.SetSecurityGroups(ctx, e.ID, e.SecurityGroups) },
		func() error { return n.TagENI(ctx, ipam.ENIID(n.instance.PrimaryENI), nil) },
		func() (err error) { cidrs, err = assign(e); return err },
		func() error { return n.Unassign(ctx, e.ID, cidrs) },
		func() error { _, err := n.DescribeENIs(ctx, nil); return err },
		func() error { return n.DetachENI(ctx, at) },
		func() error { return n.DeleteENI(ctx, e.ID) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
