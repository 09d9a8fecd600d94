package maxpods

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"cnictl/capacity/limits"
)

// formulas computes the rules again, as one would by hand. none is -1.
func formulas(i limits.Instance, s settings) map[string]int {
	const none = -1
	published := i.PublishedMaxENIs
	limit := func(n, most int) int {
		if n > most {
			return most
		}
		return n
	}
	eksCap := 110
	if i.VCPUs > 30 {
		eksCap = 250
	}
	out := map[string]int{"base": i.MaxENIs*(i.IPv4PerENI-1) + 2, "eni-max-pods": none, "nodeadm": none, "karpenter": none}
	if published > 0 {
		out["eni-max-pods"] = published*(i.IPv4PerENI-1) + 2
		out["nodeadm"] = out["eni-max-pods"]
		if out["karpenter"] = 0; published > s.reserved {
			out["karpenter"] = (published-s.reserved)*(i.IPv4PerENI-1) + 2
		}
	} else {
		published = i.MaxENIs
	}
	script := published
	if s.maxENI >= 0 {
		script = limit(s.maxENI, published)
	}
	ours := i.MaxENIs
	if s.maxENI > 0 {
		ours = limit(s.maxENI, i.MaxENIs)
	}
	branches := 0
	if s.podENI && i.TrunkingCompatible != limits.No {
		ours--
		branches = i.BranchENIs
	}
	if s.custom {
		script--
		ours--
	}
	if !s.custom && ours < 1 {
		ours = 1
	}
	if ours < 0 {
		ours = 0
	}
	scriptSlot, slot := 1, 1
	if s.prefix && i.Hypervisor == "nitro" {
		scriptSlot = 16
	}
	if s.prefix && (i.Hypervisor == "nitro" || i.BareMetal) {
		slot = 16
	}
	out["calculator-max"] = script*(i.IPv4PerENI-1)*scriptSlot + 2
	out["calculator"] = limit(out["calculator-max"], eksCap)
	out["managed-node-group"] = out["calculator"]
	out["auto-mode"] = limit(out["base"], 110)
	out["cnictl"] = limit(ours*(i.IPv4PerENI-1)*slot+branches+2, eksCap)
	if i.VCPUs == 0 {
		out["calculator"], out["managed-node-group"], out["cnictl"] = none, none, none
	}
	return out
}

type settings struct {
	prefix, custom, podENI bool
	maxENI                 int // -1 if not given
	reserved               int
}

// TestRules compares every rule with an independent computation for every type.
func TestRules(t *testing.T) {
	t.Parallel()
	count := 0
	for _, s := range []settings{
		{maxENI: -1},
		{maxENI: -1, prefix: true},
		{maxENI: -1, custom: true, reserved: 1},
		{maxENI: -1, prefix: true, custom: true, reserved: 1},
		{maxENI: -1, podENI: true, reserved: 1},
		{maxENI: -1, podENI: true, custom: true, prefix: true, reserved: 2},
		{maxENI: 1},
		{maxENI: 2, prefix: true, podENI: true, reserved: 1},
	} {
		for name := range limits.Types() {
			i, _ := limits.Lookup(name)
			p := Planned{Input: Input{InstanceType: name, PrefixDelegation: s.prefix, CustomNetworking: s.custom, PodENI: s.podENI}, ReservedENIs: s.reserved}
			if s.maxENI >= 0 {
				p.MaxENI, p.MaxENIGiven = s.maxENI, &s.maxENI
			}
			want := formulas(i, s)
			for _, r := range Rules(p) {
				got := -1
				if r.MaxPods != nil {
					got = *r.MaxPods
				}
				if got != want[r.Name] || got == -1 && r.Why == "" || got != -1 && len(r.Terms) == 0 || r.Source == "" {
					t.Errorf("%s %+v, %s: %d (%q), want %d", name, s, r.Name, got, r.Why, want[r.Name])
				}
				count++
			}
		}
	}
	if least := 1442 * 8 * len(RuleNames()); count < least {
		t.Errorf("%d values, want at least %d", count, least)
	}
}

// TestRules_Cases are the cases of the capacity reference that the calculator's examples lack.
func TestRules_Cases(t *testing.T) {
	t.Parallel()
	zero := 0
	for _, tt := range []struct {
		rule string
		p    Planned
		want int
	}{
		{RuleKarpenter, Planned{Input: Input{InstanceType: "m5.large"}, ReservedENIs: 2}, 11},
		{RuleKarpenter, Planned{Input: Input{InstanceType: "c6g.medium"}, ReservedENIs: 2}, 0},
		{RuleKarpenter, Planned{Input: Input{InstanceType: "m5.large"}, PodsPerCore: 10}, 20},
		{RuleKarpenter, Planned{Input: Input{InstanceType: "p5.48xlarge", UnmanagedENIs: 1}}, 51},
		{RuleCalculator, Planned{Input: Input{InstanceType: "m5.large"}, MaxENIGiven: &zero}, 2},
		{RuleCalculator, Planned{Input: Input{InstanceType: "m5.large", PrefixDelegation: true, CNI: Version{1, 8}}}, 29},
		{RuleManaged, Planned{Input: Input{InstanceType: "m5.4xlarge"}}, 110},
		{RuleManaged, Planned{Input: Input{InstanceType: "m5.24xlarge"}}, 250},
		{RuleAutoMode, Planned{Input: Input{InstanceType: "m5.24xlarge"}}, 110},
		{RuleAutoMode, Planned{Input: Input{InstanceType: "m5.large"}}, 29},
		{RuleOurs, Planned{Input: Input{InstanceType: "m5.large", PodENI: true, CustomNetworking: true}}, 20},
		{RuleOurs, Planned{Input: Input{InstanceType: "p5.48xlarge", PodENI: true, CustomNetworking: true}}, 122},
		{RuleOurs, Planned{Input: Input{InstanceType: "i7ie.48xlarge"}}, 250},
		{RuleENIMaxPods, Planned{Input: Input{InstanceType: "i7ie.48xlarge"}}, 737},
		{RuleBase, Planned{Input: Input{InstanceType: "i7ie.48xlarge"}}, 394},
		{RuleCalculator, Planned{Input: Input{InstanceType: "cr1.8xlarge", VCPUs: 32}}, 234},
		{RuleNodeadm, Planned{Input: Input{InstanceType: "t3.medium"}, Expression: func(enis, ips, _ int) (int, error) { return (enis-1)*(ips-1) + 2, nil }}, 12},
		{RuleNodeadm, Planned{Input: Input{InstanceType: "t3.medium"}, Expression: func(int, int, int) (int, error) { return 0, errors.New("no") }}, 17},
	} {
		for _, r := range Rules(tt.p) {
			if r.Name == tt.rule && (r.MaxPods == nil || *r.MaxPods != tt.want) {
				t.Errorf("%s of %s: %+v, want %d", tt.rule, tt.p.InstanceType, r, tt.want)
			}
		}
	}
	for _, r := range Rules(Planned{Input: Input{InstanceType: "m5.huge"}}) {
		if r.MaxPods != nil || r.Why == "" {
			t.Errorf("unknown type: %+v", r)
		}
	}
}

// TestPlanned_Problems: settings without effect yield a warning, impossible ones an error. Each
// names the rule and the document that defines it.
func TestPlanned_Problems(t *testing.T) {
	t.Parallel()
	zero, minus := 0, -1
	for name, tt := range map[string]struct {
		p              Planned
		warning, fails string
	}{
		"nothing":                     {p: Planned{Input: Input{InstanceType: "m5.large"}}},
		"no limit":                    {p: Planned{Input: Input{InstanceType: "m5.large"}, MaxENIGiven: &zero}, warning: `MAX_ENI=0 means no limit .*docs/configuration\.md`},
		"prefixes on Xen":             {p: Planned{Input: Input{InstanceType: "m4.large", PrefixDelegation: true}}, warning: `m4\.large has no prefix delegation.*EC2 user guide`},
		"prefixes on bare metal":      {p: Planned{Input: Input{InstanceType: "m5.metal", PrefixDelegation: true}}},
		"IPv6 on Xen":                 {p: Planned{Input: Input{InstanceType: "m4.large", IPv6: true}}, fails: `m4\.large cannot run IPv6.*EC2 user guide`},
		"IPv6 with custom networking": {p: Planned{Input: Input{InstanceType: "m5.large", IPv6: true, CustomNetworking: true}}, fails: `custom networking does not work with IPv6.*docs/configuration\.md`},
		"negative":                    {p: Planned{Input: Input{InstanceType: "m5.large", MaxENI: -1}}, fails: `max-eni is -1: want 0 to 1000000`},
		"negative pods":               {p: Planned{Input: Input{InstanceType: "m5.large", HostPods: &minus}}, fails: `host-pods is -1: want 0 to 1000000`},
	} {
		warnings, err := tt.p.Problems()
		if matched := len(warnings) == 1 && regexp.MustCompile(tt.warning).MatchString(warnings[0]); (tt.warning != "") != matched || tt.warning == "" && len(warnings) > 0 {
			t.Errorf("%s: warnings %q, want %q", name, warnings, tt.warning)
		}
		if matched := err != nil && regexp.MustCompile(tt.fails).MatchString(err.Error()); (tt.fails != "") != matched || tt.fails == "" && err != nil {
			t.Errorf("%s: %v, want %q", name, err, tt.fails)
		}
	}
}

func TestDisagreements(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"t3.medium": 0, "m5.large": 0, "m5.metal": 2, "p5.48xlarge": 1, "i3.metal": 3, "c7i.32xlarge": 1, "i7ie.48xlarge": 3, "hpc7a.12xlarge": 2} {
		i, ok := limits.Lookup(name)
		if got := Disagreements(i); !ok || len(got) != want {
			t.Errorf("%s: %d, want %d:\n%s", name, len(got), want, fmt.Sprintln(got))
		}
	}
}
