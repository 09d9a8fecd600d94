package keeper

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/warmpool"
)

// TestAttach_IPv6: the ENI comes with its own IPv6 address, and without the /80 that is
// assigned later. A lost answer does not create a second ENI.
func TestAttach_IPv6(t *testing.T) {
	t.Parallel()
	op := attachOp
	op.Prefixes, op.ipv6, op.subnet = 1, true, netip.MustParsePrefix("fd00::/64")
	op.create.IPs, op.create.IPv6 = 0, true
	for _, row := range []struct {
		name  string
		fail  []error
		lost  bool
		enis  int
		works bool
	}{
		{"works", nil, false, 1, true},
		{"without answer", []error{unanswered()}, true, 1, true},
		{"the subnet is full", []error{failed(cause.SubnetExhausted)}, false, 0, false}, // and less than one is not possible
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			m.fail["create"], m.lost["create"] = row.fail, row.lost
			res := attachENI(t.Context(), m, op)
			if (res.Err == nil) != row.works || len(m.enis) != row.enis {
				t.Fatalf("%+v, %d ENIs", res, len(m.enis))
			}
			if !row.works {
				if n := m.count("create"); n != 1 {
					t.Errorf("asked %d times for what there is none of", n)
				}
				return
			}
			if len(res.CIDRs) != 0 || res.ENI.PrimaryIP != netip.MustParseAddr("fd00::5") || res.ENI.Subnet != op.subnet {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestAssign_IPv6 requests one /80, whatever fails, and finds one that was assigned without
// an answer.
func TestAssign_IPv6(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		fail      error
		lost      bool
		cidrs     []netip.Prefix
		all, full bool
		works     bool
	}{
		{name: "works", cidrs: []netip.Prefix{ipv6Block(0)}, works: true},
		{name: "with effect, without answer", fail: unanswered(), lost: true, cidrs: []netip.Prefix{ipv6Block(0)}, all: true},
		{name: "without effect and answer", fail: unanswered(), all: true},
		{name: "full", fail: &Failure{AddressLimit: true, Err: errors.New("limit")}, all: true, full: true, works: true},
		{name: "no block", fail: failed(cause.SubnetFragmented)},
		{name: "refused", fail: failed(cause.EC2Unauthorized)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			eni := attached(m) // its IPv4 addresses are not part of an IPv6 pool
			if row.fail != nil {
				m.fail["assign"], m.lost["assign"] = []error{row.fail}, row.lost
			}
			res := assignAddresses(t.Context(), m, Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: eni.ID, Prefixes: 1}, ipv6: true})
			if !slices.Equal(res.CIDRs, row.cidrs) || res.All != row.all || res.Full != row.full || (res.Err == nil) != row.works {
				t.Errorf("%+v", res)
			}
			if n := m.count("assign"); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}
