package imds_test

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/internal/imds"
	"cnictl/testenv/aws/fakeaws"
)

// An IPv6 node reads its own address or knows that it has none; a failed read does not mean
// none.
func TestIdentity_IPv6(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	dual, err := n.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: n.subnet.ID, IPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	server, err := fakeaws.NewServer(n.world, dual.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, row := range []struct {
		name, url string
		ipv6      bool
		want      string
	}{
		{"IPv6 node", server.IMDSURL, true, "2001:db8:0:1::4"},
		{"the same in IPv4 mode", server.IMDSURL, false, "invalid IP"},
		{"node without IPv6", n.url, true, "invalid IP"},
	} {
		id, err := imds.New(imds.Config{Endpoint: row.url, IPv6: row.ipv6}).Identity(t.Context())
		if err != nil || id.PrimaryIPv6.String() != row.want {
			t.Errorf("%s: %s, %v, want %s", row.name, id.PrimaryIPv6, err, row.want)
		}
	}
	n.world.SetIMDSFaults(func(p string, _ int) int {
		if p == "meta-data/ipv6" {
			return http.StatusForbidden
		}
		return 0
	})
	if id, err := imds.New(imds.Config{Endpoint: server.IMDSURL, IPv6: true}).Identity(t.Context()); err == nil || !strings.Contains(err.Error(), "meta-data/ipv6") {
		t.Errorf("a failed read: %+v, %v", id, err)
	}
}

func TestVPCIPv6CIDRs(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	c := imds.New(imds.Config{Endpoint: n.url})
	got, err := c.VPCIPv6CIDRs(t.Context(), n.instance.PrimaryMAC)
	if err != nil || !slices.Equal(got, []netip.Prefix{netip.MustParsePrefix("2001:db8::/56")}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.VPCIPv6CIDRs(t.Context(), "../mac"); err == nil {
		t.Error("a MAC that is none is accepted")
	}
	n.world.SetIMDSFaults(func(string, int) int { return http.StatusForbidden })
	if got, err := c.VPCIPv6CIDRs(t.Context(), n.instance.PrimaryMAC); err == nil {
		t.Errorf("a failed read: %v", got)
	}
}

// The security groups take one request, and a failure or an empty answer never means "no
// groups".
func TestSecurityGroups(t *testing.T) {
	t.Parallel()
	n := newNode(t, fakeaws.Options{})
	c := imds.New(imds.Config{Endpoint: n.url})
	group := n.world.AddSecurityGroup(n.instance.VPCID, "pods")
	if err := n.world.SetSecurityGroups(n.instance.PrimaryENI, group); err != nil {
		t.Fatal(err)
	}
	if got, err := c.SecurityGroups(t.Context(), n.instance.PrimaryMAC); err != nil || !slices.Equal(got, []string{group}) {
		t.Errorf("%q, %v", got, err)
	}
	reads := 0
	for _, call := range n.world.IMDSCalls() {
		if call.Method == http.MethodGet {
			reads++
		}
	}
	if reads != 1 {
		t.Errorf("%d reads, want 1", reads)
	}
	if _, err := c.SecurityGroups(t.Context(), "02:fa:4e:00:00:99"); !errors.Is(err, imds.ErrNotThere) {
		t.Errorf("of an interface that is not there: %v", err)
	}
	n.world.SetIMDSFaults(func(string, int) int { return http.StatusForbidden })
	if got, err := c.SecurityGroups(t.Context(), n.instance.PrimaryMAC); err == nil || got != nil {
		t.Errorf("a failed read: %q, %v", got, err)
	}
	empty := metadata(t, map[string]string{one + "security-group-ids": "\n"})
	if got, err := empty.SecurityGroups(t.Context(), "02:00:00:00:00:01"); err == nil {
		t.Errorf("an empty list: %q", got)
	}
}
