package fleet

import (
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// card0 returns upstream's report of a pool.
func card0(mode string) introspect.Summary {
	return introspect.Summary{
		Cards: []introspect.CardSummary{{Mode: mode, ENIs: new(2), Total: 20, Assigned: 8, Free: 12}}, CustomNetworking: new(false),
	}
}

// TestComplete: the Node object and the published limits fill in what upstream does not
// report. The figures are from AWS's tables.
func TestComplete(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		summary introspect.Summary
		enis    []introspect.NodeENI
		object  document.NodeObject
		eni     int
		slots   int
		limit   int // -1: unknown
		verdict string
		serves  int // -1: unknown
	}{
		{"secondary addresses", card0(introspect.ModeSecondaryIP), nil, document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)}, 3, 9, 27, introspect.MaxPodsOK, 29},
		{"more pods than addresses", card0(introspect.ModeSecondaryIP), nil, document.NodeObject{InstanceType: "m5.large", MaxPods: new(110)}, 3, 9, 27, introspect.MaxPodsOver, 29},
		{"prefixes", card0(introspect.ModePrefix), nil, document.NodeObject{InstanceType: "c5.2xlarge", MaxPods: new(58)}, 4, 14, 896, introspect.MaxPodsUnder, 898},
		{"the trunk has a slot", card0(introspect.ModeSecondaryIP), []introspect.NodeENI{{Primary: true}, {Trunk: true}}, document.NodeObject{InstanceType: "m5.large", MaxPods: new(29), BranchENIs: new(9)}, 3, 9, 18, introspect.MaxPodsOK, 29},
		{"the primary is excluded", card0(introspect.ModeSecondaryIP), []introspect.NodeENI{{Primary: true, Excluded: true}}, document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)}, 3, 9, 18, introspect.MaxPodsOver, 20},
		{"in change between the modes", card0(introspect.ModeMixed), nil, document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)}, 3, 9, -1, "", -1},
		{"of several cards the default one counts", card0(introspect.ModeSecondaryIP), nil, document.NodeObject{InstanceType: "p5.48xlarge", MaxPods: new(100)}, 2, 49, 98, introspect.MaxPodsOK, 100},
	} {
		s, o := x.summary, x.object
		o.InstanceID = "i-1"
		Target{Object: &o}.complete(&s, x.enis)
		c, m := s.Cards[0], s.MaxPods
		if s.InstanceType != o.InstanceType || s.InstanceID != "i-1" || *c.ENILimit != x.eni || *c.SlotsPerENI != x.slots || m.Value != o.MaxPods || m.Source != "node" || m.Verdict != x.verdict {
			t.Errorf("%s: %+v, max-pods %+v", x.name, c, m)
			continue
		}
		if limit := orMinus(c.AddressLimit); limit != x.limit {
			t.Errorf("%s: %d addresses, want %d", x.name, limit, x.limit)
		}
		if serves := orMinus(m.TotalCapacity); serves != x.serves || (serves < 0) != (len(m.Terms) == 0) {
			t.Errorf("%s: they serve %d pods, want %d; terms %+v", x.name, serves, x.serves, m.Terms)
		}
	}
}

func orMinus(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

// TestComplete_Settings: custom networking uses up the primary ENI. While the settings are
// unknown, so is everything that depends on them.
func TestComplete_Settings(t *testing.T) {
	t.Parallel()
	o := &document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)}
	s := card0(introspect.ModeSecondaryIP)
	s.CustomNetworking = new(true)
	Target{Object: o}.complete(&s, nil)
	if *s.Cards[0].AddressLimit != 18 || *s.MaxPods.TotalCapacity != 20 || s.MaxPods.Verdict != introspect.MaxPodsOver {
		t.Errorf("custom networking: %+v %+v", s.Cards[0], s.MaxPods)
	}
	s = card0(introspect.ModeSecondaryIP)
	s.CustomNetworking = nil
	Target{Object: o}.complete(&s, nil)
	if s.Cards[0].AddressLimit != nil || *s.Cards[0].ENILimit != 3 || *s.MaxPods.Value != 29 || s.MaxPods.Verdict != "" || s.MaxPods.Terms != nil {
		t.Errorf("settings unknown: %+v %+v", s.Cards[0], s.MaxPods)
	}
	s = card0(introspect.ModePrefix)
	s.IPFamily = "ipv6"
	Target{Object: o}.complete(&s, nil)
	if s.Cards[0].AddressLimit != nil || *s.Cards[0].SlotsPerENI != 1 || *s.MaxPods.TotalCapacity != introspect.MaxPodsUnlimited || s.MaxPods.Verdict != introspect.MaxPodsOK {
		t.Errorf("IPv6: %+v %+v", s.Cards[0], s.MaxPods)
	}
}

// TestComplete_KeepsReported: limits from metrics are kept, and a type may be missing from
// the table.
func TestComplete_KeepsReported(t *testing.T) {
	t.Parallel()
	s, err := SummaryOfMetrics([]byte("awscni_total_ip_addresses 9\nawscni_assigned_ip_addresses 4\nawscni_eni_max 2\nawscni_ip_max 18\nawscni_max_pods 20\n"))
	if err != nil {
		t.Fatal(err)
	}
	Target{Object: &document.NodeObject{InstanceType: "m5.large", MaxPods: new(29)}}.complete(&s, nil)
	if c := s.Cards[0]; *c.ENILimit != 2 || *c.AddressLimit != 18 || *c.SlotsPerENI != 9 || *s.MaxPods.Value != 20 || s.InstanceType != "m5.large" {
		t.Errorf("%+v %+v", c, s.MaxPods)
	}
	s = card0(introspect.ModeSecondaryIP)
	Target{Object: &document.NodeObject{InstanceType: "x99.huge", MaxPods: new(29)}}.complete(&s, nil)
	if c := s.Cards[0]; c.ENILimit != nil || c.AddressLimit != nil || *s.MaxPods.Value != 29 || s.InstanceType != "x99.huge" {
		t.Errorf("%+v %+v", c, s.MaxPods)
	}
	before := card0(introspect.ModeSecondaryIP)
	Target{Object: nil}.complete(&before, nil)
	if before.MaxPods != nil || before.InstanceType != "" {
		t.Errorf("without an object: %+v", before)
	}
	s = card0(introspect.ModeSecondaryIP)
	s.Trunk = &introspect.Trunk{Enabled: true, ENIID: "eni-1"}
	Target{Object: &document.NodeObject{InstanceType: "m5.large"}}.complete(&s, nil)
	if tr := s.Trunk; tr.Supported == nil || !*tr.Supported || *tr.BranchLimit != 9 || tr.BranchUsed != nil {
		t.Errorf("%+v", tr)
	}
}
