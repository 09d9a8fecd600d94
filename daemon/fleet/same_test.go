package fleet

import (
	"strconv"
	"testing"

	"cnictl/capacity/capacitytest"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// TestSameCapacity: what-if of a node and its bar show the addresses that max-pods counts, for
// every type with every setting, whether our daemon reports them or upstream's pod declares them.
func TestSameCapacity(t *testing.T) {
	t.Parallel()
	nodes := 0
	for n := range capacitytest.Nodes {
		r := maxpods.Compute(n.Input)
		mode := introspect.ModeSecondaryIP
		if n.Prefixes() {
			mode = introspect.ModePrefix
		}
		enis := []introspect.NodeENI{{Primary: true, Excluded: n.PrimaryExcluded}}
		for range n.FurtherExcluded() {
			enis = append(enis, introspect.NodeENI{Excluded: true})
		}
		if n.TrunkAttached {
			enis = append(enis, introspect.NodeENI{Trunk: true})
		}
		check := func(daemon string, d document.NodeIPAM) {
			node, why := WhatIf(d)
			bar, _ := Capacity(d, d.Summary.Cards[0])
			if bar == nil || *bar != r.PodIPs || why != "" || node.Settings.Capacity() != r.PodIPs {
				t.Fatalf("%s: %s what-if %d %s, bar %v, max-pods %d", n, daemon, node.Settings.Capacity(), why, text(bar), r.PodIPs)
			}
		}
		ours := introspect.Summary{
			InstanceType: n.Type, CustomNetworking: &n.CustomNetworking, MaxPods: introspect.MaxPodsOf(nil, "", r),
			Cards:   []introspect.CardSummary{{Mode: mode, OtherENIs: &n.UnmanagedENIs, AddressLimit: &r.PodIPs}},
			Targets: introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(0), MaxENI: &n.MaxENI},
			Trunk:   &introspect.Trunk{Enabled: n.PodENI},
		}
		if n.StatedENIs > 0 {
			ours.Cards[0].StatedENILimit, ours.Cards[0].StatedSlots = &introspect.StatedLimit{Limit: n.StatedENIs}, &introspect.StatedLimit{Limit: n.StatedSlots}
		}
		for _, e := range enis {
			var flags []string
			if e.Primary {
				flags = append(flags, introspect.ENIFlagPrimary)
			}
			if e.Excluded {
				flags = append(flags, introspect.ENIFlagExcluded)
			}
			ours.ENIs = append(ours.ENIs, introspect.ENISummary{Flags: flags})
		}
		if n.TrunkAttached {
			ours.Trunk.ENIID = "eni-trunk"
		}
		check("ours", document.NodeIPAM{Summary: &ours})
		const every = 7 // to parse an environment takes longer than all the rest
		if nodes++; nodes%every > 0 || n.UnmanagedENIs > 0 || n.StatedENIs > 0 {
			continue // upstream's daemon does not report these two
		}
		target := Target{Object: &document.NodeObject{InstanceType: n.Type}, Env: map[string]string{
			"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": strconv.FormatBool(n.CustomNetworking), "ENABLE_POD_ENI": strconv.FormatBool(n.PodENI),
		}}
		if n.MaxENI > 0 {
			target.Env["MAX_ENI"] = strconv.Itoa(n.MaxENI)
		}
		theirs := summaryOfV1(&introspect.Pool{Cards: []introspect.CardSummary{{Mode: mode}}, ENIs: enis}, nil)
		target.complete(&theirs, enis)
		check("upstream", document.NodeIPAM{Summary: &theirs, ENIs: enis})
	}
}

// TestComplete_Declared: upstream's daemon does not report all its settings, its pod declares
// them. What the daemon reports wins.
func TestComplete_Declared(t *testing.T) {
	t.Parallel()
	target := Target{
		Object: &document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)},
		Env:    map[string]string{"WARM_IP_TARGET": "2", "MINIMUM_IP_TARGET": "12", "MAX_ENI": "2", "IP_COOLDOWN_PERIOD": "45", "WARM_ENI_TARGET": "x"},
	}
	s := card0(introspect.ModeSecondaryIP)
	s.Targets.WarmIP = new(3)
	target.complete(&s, nil)
	node, why := WhatIf(document.NodeIPAM{Summary: &s, Object: target.Object})
	if to := node.Settings; why != "" || to.WarmIP != 3 || to.MinimumIP != 12 || to.WarmENI != 1 || to.MaxENI != 2 || to.Cooldown.Seconds() != 45 || to.Capacity() != 18 {
		t.Errorf("%+v %s", node, why)
	}
	if c := s.Cards[0]; *c.ENILimit != 2 || *c.AddressLimit != 18 {
		t.Errorf("%+v", c)
	}
	target.Env = nil
	s = card0(introspect.ModeSecondaryIP)
	target.complete(&s, nil)
	if _, why := WhatIf(document.NodeIPAM{Summary: &s, Object: target.Object}); why == "" {
		t.Error("a node without known targets is simulated")
	}
}
