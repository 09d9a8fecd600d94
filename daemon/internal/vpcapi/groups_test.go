package vpcapi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
)

func TestSameGroups(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b []string
		want bool
	}{
		{nil, nil, true}, {nil, []string{}, true}, {[]string{"sg-1"}, nil, false},
		{[]string{"sg-1", "sg-2"}, []string{"sg-2", "sg-1"}, true},
		{[]string{"sg-1", "sg-1"}, []string{"sg-1"}, true},
		{[]string{"sg-1", "sg-2"}, []string{"sg-1", "sg-3"}, false},
		{[]string{"sg-1", "sg-2"}, []string{"sg-1"}, false},
	} {
		a, b := slices.Clone(row.a), slices.Clone(row.b)
		if got := vpcapi.SameGroups(a, b); got != row.want || vpcapi.SameGroups(b, a) != row.want {
			t.Errorf("%q and %q: %v", row.a, row.b, got)
		}
		if !slices.Equal(a, row.a) || !slices.Equal(b, row.b) {
			t.Errorf("%q and %q were changed to %q and %q", row.a, row.b, a, b)
		}
	}
}

func TestSetSecurityGroups(t *testing.T) {
	t.Parallel()
	n := newNode(t, setup{})
	one, two := n.world.AddSecurityGroup(n.instance.VPCID, "one"), n.world.AddSecurityGroup(n.instance.VPCID, "two")
	primary := ipam.ENIID(n.instance.PrimaryENI)
	if err := n.SetSecurityGroups(t.Context(), primary, []string{two, one, two}); err != nil {
		t.Fatal(err)
	}
	got, err := n.DescribeENIs(t.Context(), nil)
	if err != nil || len(got) != 1 || !vpcapi.SameGroups(got[0].SecurityGroups, []string{one, two}) {
		t.Errorf("described %+v, %v", got, err)
	}
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("sg-%08x", i))
	}
	asked := len(n.world.Calls())
	for name, groups := range map[string][]string{"none": nil, "too many": many, "no id": {one, "default"}} {
		var bad *vpcapi.GroupsError
		if err := n.SetSecurityGroups(t.Context(), primary, groups); !errors.As(err, &bad) || vpcapi.IsUnanswered(err) {
			t.Errorf("%s: %v", name, err)
		}
		if len(groups) == 0 {
			continue // without groups an ENI gets the VPC's default one
		}
		if _, err := n.CreateENI(t.Context(), vpcapi.CreateENI{SubnetID: n.subnet.ID, SecurityGroups: groups}); !errors.As(err, &bad) || vpcapi.IsUnanswered(err) {
			t.Errorf("created with %s: %v", name, err)
		}
	}
	if got := len(n.world.Calls()); got != asked {
		t.Errorf("EC2 was asked %d times for what cannot be", got-asked)
	}
}
