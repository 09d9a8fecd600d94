package rtnl

import (
	"testing"

	"cnictl/daemon/netstate"
)

// TestVLAN: a VLAN device is read back as written.
func TestVLAN(t *testing.T) {
	t.Parallel()
	want := netstate.Link{Name: "vlan.eth.7", Kind: "vlan", MAC: netstate.MAC{2, 0, 0, 0, 0, 7}, Parent: 3, VLAN: 4094}
	var b Batch
	b.VLAN(want.Name, want.Parent, want.VLAN, want.MAC)
	if got, err := parseLink(written(t, &b)); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
