package ipamd

import (
	"testing"

	"cnictl/daemon/config"
)

// TestNode_SweepsLeaks: leaked ENIs are swept in the same modes as upstream.
func TestNode_SweepsLeaks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		config       config.Config
		provisioning bool
		want         bool
	}{
		{"IPv4", config.Config{}, true, true},
		{"IPv6", config.Config{IPv6: true}, true, false},
		{"DISABLE_LEAKED_ENI_CLEANUP", config.Config{LeakSweepOff: true}, true, false},
		{"without provisioning", config.Config{}, false, false},
	} {
		n := &node{config: row.config, provisioning: row.provisioning}
		if got := n.keeperSettings().SweepLeaks; got != row.want {
			t.Errorf("%s: sweeps: %t, want %t", row.name, got, row.want)
		}
	}
}
