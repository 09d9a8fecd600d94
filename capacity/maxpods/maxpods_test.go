package maxpods

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
)

func ptr(n int) *int { return &n }

// TestCompute_CalculatorExamples: our rule agrees with the script's examples, except where the
// script is known to be wrong: prefixes on bare metal, and MAX_ENI=0.
func TestCompute_CalculatorExamples(t *testing.T) {
	t.Parallel()
	differ := map[string]int{"m5.metal prefix": 11762, "c6g.metal prefix": 11762, "m5.large eni0": 29}
	for _, x := range examples(t) {
		in := Input{InstanceType: x.i.Type, PrefixDelegation: x.has("prefix"), CustomNetworking: x.has("custom")}
		if n := x.maxENI(t); n != nil {
			in.MaxENI = *n
		}
		if x.has("cni1.8") {
			in.CNI = Version{1, 8}
		}
		most, rec := x.most, x.rec
		if ours, ok := differ[x.i.Type+" "+x.settings]; ok {
			most, rec = ours, min(ours, Cap(x.vcpus))
		}
		r := Compute(in)
		if r.TotalCapacity != most || r.Recommended != rec || r.IPCapacity != most || r.Verdict != NoVerdict || r.Source != FromTable {
			t.Errorf("%s %s: %+v, want %d and %d", x.i.Type, x.settings, r, most, rec)
		}
	}
}

// numbers are the fields of a Result for which the reference gives figures.
type numbers struct {
	U, IP, Branch, Host, Total, Recommended int
}

func TestCompute_Terms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   Input
		want numbers
	}{
		{"trunk attached", Input{InstanceType: "m5.large", PodENI: true, TrunkAttached: true}, numbers{2, 18, 9, 2, 29, 29}},
		{"trunk to come", Input{InstanceType: "m5.large", PodENI: true}, numbers{2, 18, 9, 2, 29, 29}},
		{"trunk and custom networking", Input{InstanceType: "m5.large", TrunkAttached: true, CustomNetworking: true}, numbers{1, 9, 9, 2, 20, 20}},
		{"trunk and prefixes", Input{InstanceType: "m5.large", PodENI: true, PrefixDelegation: true}, numbers{2, 288, 9, 2, 299, 110}},
		{"trunk on a larger type", Input{InstanceType: "c5.4xlarge", PodENI: true}, numbers{7, 203, 54, 2, 259, 110}},
		{"a type that cannot trunk", Input{InstanceType: "t3.large", PodENI: true}, numbers{3, 33, 0, 2, 35, 35}},
		{"bare metal with prefixes", Input{InstanceType: "m5.metal", PrefixDelegation: true}, numbers{15, 11760, 0, 2, 11762, 250}},
		{"bare metal before 1.11", Input{InstanceType: "m5.metal", PrefixDelegation: true, CNI: Version{1, 10}}, numbers{15, 735, 0, 2, 737, 250}},
		{"bare metal from 1.11", Input{InstanceType: "m5.metal", PrefixDelegation: true, CNI: Version{1, 11}}, numbers{15, 11760, 0, 2, 11762, 250}},
		{"Nitro from 1.9", Input{InstanceType: "m5.large", PrefixDelegation: true, CNI: Version{1, 9}}, numbers{3, 432, 0, 2, 434, 110}},
		{"any 2.x", Input{InstanceType: "m5.metal", PrefixDelegation: true, CNI: Version{2, 0}}, numbers{15, 11760, 0, 2, 11762, 250}},
		{"no interface left: all plain pods fail", Input{InstanceType: "p5.48xlarge", TrunkAttached: true, CustomNetworking: true}, numbers{0, 0, 120, 2, 122, 122}},
		{"two interfaces, custom networking halves", Input{InstanceType: "p5.48xlarge", CustomNetworking: true}, numbers{1, 49, 0, 2, 51, 51}},
		{"a type the controller does not list", Input{InstanceType: "trn2.48xlarge", PodENI: true}, numbers{1, 49, 0, 2, 51, 51}},
		{"no slot for the trunk", Input{InstanceType: "m5.large", PodENI: true, NoTrunkSlot: true}, numbers{3, 27, 0, 2, 29, 29}},
		{"advertised branch ENIs outrank the table", Input{InstanceType: "m5.large", TrunkAttached: true, BranchENIs: ptr(6)}, numbers{2, 18, 6, 2, 26, 26}},
		{"MAX_ENI", Input{InstanceType: "m5.large", MaxENI: 2}, numbers{2, 18, 0, 2, 20, 20}},
		{"MAX_ENI 0 and below are not set", Input{InstanceType: "m5.large", MaxENI: -1}, numbers{3, 27, 0, 2, 29, 29}},
		{"MAX_ENI above the limit", Input{InstanceType: "m5.large", MaxENI: 9}, numbers{3, 27, 0, 2, 29, 29}},
		{"MAX_ENI 1 with a trunk: the primary still serves", Input{InstanceType: "m5.large", MaxENI: 1, TrunkAttached: true}, numbers{1, 9, 9, 2, 20, 20}},
		{"EC2 attaches fewer", Input{InstanceType: "m5.large", StatedENIs: 2}, numbers{2, 18, 0, 2, 20, 20}},
		{"MAX_ENI is lower still", Input{InstanceType: "m5.large", StatedENIs: 2, MaxENI: 1}, numbers{1, 9, 0, 2, 11, 11}},
		{"EC2 puts fewer addresses on an ENI", Input{InstanceType: "m5.large", StatedSlots: 5}, numbers{3, 15, 0, 2, 17, 17}},
		{"and prefixes", Input{InstanceType: "m5.large", StatedSlots: 1, PrefixDelegation: true}, numbers{3, 48, 0, 2, 50, 50}},
		{"MAX_ENI 1 with custom networking", Input{InstanceType: "m5.large", MaxENI: 1, CustomNetworking: true}, numbers{0, 0, 0, 2, 2, 2}},
		{"unmanaged", Input{InstanceType: "m5.large", UnmanagedENIs: 1}, numbers{2, 18, 0, 2, 20, 20}},
		{"excluded", Input{InstanceType: "m5.large", ExcludedENIs: 1}, numbers{2, 18, 0, 2, 20, 20}},
		{"the primary is taken away once", Input{InstanceType: "m5.large", ExcludedENIs: 1, PrimaryExcluded: true, CustomNetworking: true}, numbers{2, 18, 0, 2, 20, 20}},
		{"all excluded", Input{InstanceType: "m5.large", ExcludedENIs: 3, PrimaryExcluded: true}, numbers{0, 0, 0, 2, 2, 2}},
		{"slots of the other mode", Input{InstanceType: "m5.large", PrefixDelegation: true, LeftoverSlots: 5}, numbers{3, 352, 0, 2, 354, 110}},
		{"more of them than slots", Input{InstanceType: "m5.large", PrefixDelegation: true, LeftoverSlots: 500}, numbers{3, 0, 0, 2, 2, 2}},
		{"Xen ignores prefixes", Input{InstanceType: "m4.large", PrefixDelegation: true}, numbers{2, 18, 0, 2, 20, 20}},
		{"host pods are counted", Input{InstanceType: "m5.large", HostPods: ptr(6)}, numbers{3, 27, 0, 6, 33, 33}},
		{"none at all", Input{InstanceType: "m5.large", HostPods: ptr(0)}, numbers{3, 27, 0, 0, 27, 27}},
		{"the default card, not the instance", Input{InstanceType: "p5.48xlarge"}, numbers{2, 98, 0, 2, 100, 100}},
		{"the later card layout", Input{InstanceType: "i7ie.48xlarge"}, numbers{8, 392, 0, 2, 394, 250}},
		{"232 addresses, not 234", Input{InstanceType: "c5.4xlarge", HostPods: ptr(0)}, numbers{8, 232, 0, 0, 232, 110}},
		{"IPv6", Input{InstanceType: "m5.large", IPv6: true, PrefixDelegation: true}, numbers{3, Unlimited, 0, 2, Unlimited, 110}},
		{"IPv6 on a tiny type", Input{InstanceType: "c6g.medium", IPv6: true, PrefixDelegation: true}, numbers{2, Unlimited, 0, 2, Unlimited, 98}},
		{"IPv6 on Xen", Input{InstanceType: "m4.large", IPv6: true, PrefixDelegation: true}, numbers{2, 0, 0, 2, 2, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Compute(tt.in)
			got := numbers{r.Interfaces, r.PodIPs, r.BranchENIs, r.HostPods, r.TotalCapacity, r.Recommended}
			if got != tt.want {
				t.Errorf("%+v, want %+v\n%s", got, tt.want, printed(r))
			}
			if r.IPCapacity != sum(r.PodIPs, r.HostPods) {
				t.Errorf("ipCapacity %d", r.IPCapacity)
			}
		})
	}
}

func TestCompute_Verdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		in              Input
		want            Verdict
		short, stranded int
		note            string
	}{
		{"stock", Input{InstanceType: "m5.large", MaxPods: 29}, OK, 0, 0, ""},
		{"kubelet's default on a small node", Input{InstanceType: "m5.large", MaxPods: 110}, Over, 81, 0, "81 pods can be scheduled without an address for them"},
		{"one too many", Input{InstanceType: "m5.large", MaxPods: 30}, Over, 1, 0, "1 pod can be"},
		{"one too few", Input{InstanceType: "m5.large", MaxPods: 28}, Under, 0, 1, "1 address can never be used; the daemon stops growing the pool at max-pods"},
		{"stock, but prefixes are on", Input{InstanceType: "m5.large", PrefixDelegation: true, MaxPods: 29}, Under, 0, 405, "405 addresses"},
		{"the convention", Input{InstanceType: "m5.large", PrefixDelegation: true, MaxPods: 110}, OK, 0, 324, ""},
		{"between convention and capacity", Input{InstanceType: "m5.4xlarge", MaxPods: 234}, OK, 0, 0, ""},
		{"managed node group", Input{InstanceType: "m5.4xlarge", MaxPods: 110}, OK, 0, 124, ""},
		{"stock value with custom networking", Input{InstanceType: "m5.large", CustomNetworking: true, MaxPods: 29}, Over, 9, 0, "9 pods"},
		{"one host pod: 28 pods for 27 addresses", Input{InstanceType: "m5.large", HostPods: ptr(1), MaxPods: 29}, Over, 1, 0, "1 pod can be"},
		{"six host pods", Input{InstanceType: "m5.large", HostPods: ptr(6), MaxPods: 29}, Under, 0, 4, "4 addresses"},
		{"a trunk keeps the sum, not the plain pods", Input{InstanceType: "m5.large", TrunkAttached: true, MaxPods: 29}, OK, 0, 0, "only 18 of the pods can use an ordinary address"},
		{"all plain pods fail", Input{InstanceType: "p5.48xlarge", TrunkAttached: true, CustomNetworking: true, MaxPods: 100}, Under, 0, 22, "only 0 of the pods can use an ordinary address"},
		{"the slot of a refused trunk", Input{InstanceType: "trn2.48xlarge", PodENI: true, MaxPods: 100}, Over, 49, 0, "the VPC resource controller does not support trn2.48xlarge"},
		{"no trunk slot", Input{InstanceType: "m5.large", PodENI: true, NoTrunkSlot: true, MaxPods: 29}, OK, 0, 0, "replace the node"},
		{"instance total taken for the card's", Input{InstanceType: "p5.48xlarge", MaxPods: 3138}, Over, 3038, 0, ""},
		{"IPv6 is a policy number", Input{InstanceType: "m5.large", IPv6: true, MaxPods: 29}, OK, 0, 0, ""},
		{"and never too much", Input{InstanceType: "m5.large", IPv6: true, MaxPods: 5000}, OK, 0, 0, ""},
		{"IPv6 on Xen", Input{InstanceType: "m4.large", IPv6: true, MaxPods: 20}, Over, 18, 0, "does not start in IPv6 mode"},
		{"not known", Input{InstanceType: "m5.large"}, NoVerdict, 0, 0, ""},
		{"memory", Input{InstanceType: "t3.small", PrefixDelegation: true, MaxPods: 110}, OK, 0, 36, "1465 of 2048 MiB are reserved for kubelet at 110 pods"},
		{"Xen", Input{InstanceType: "m4.large", PrefixDelegation: true, MaxPods: 20}, OK, 0, 0, "prefix delegation has no effect: the instance type is neither Nitro nor bare metal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Compute(tt.in)
			if r.Verdict != tt.want || r.Short != tt.short || r.Stranded != tt.stranded {
				t.Errorf("%q short %d stranded %d, want %q %d %d\n%s", r.Verdict, r.Short, r.Stranded, tt.want, tt.short, tt.stranded, printed(r))
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

// TestCompute_AtRisk: plain pods cannot use branch ENIs. This is a second verdict next to the other.
func TestCompute_AtRisk(t *testing.T) {
	t.Parallel()
	trunk := func(maxPods int, more func(*Input)) Input {
		in := Input{InstanceType: "m5.large", TrunkAttached: true, MaxPods: maxPods} // ip 18, br 9, host 2
		if more != nil {
			more(&in)
		}
		return in
	}
	tests := []struct {
		name    string
		in      Input
		want    Verdict
		exposed int
	}{
		{"max-pods for all", trunk(29, nil), OK, 9},
		{"some have a branch ENI", trunk(29, func(in *Input) { in.BranchPods = ptr(4) }), OK, 5},
		{"all of those that may", trunk(29, func(in *Input) { in.BranchPods = ptr(9) }), OK, 0},
		{"one fewer", trunk(29, func(in *Input) { in.BranchPods = ptr(8) }), OK, 1},
		{"as many as addresses", trunk(20, nil), Under, 0},
		{"one more than addresses", trunk(21, nil), Under, 1},
		{"more in the host's network", trunk(29, func(in *Input) { in.HostPods = ptr(11) }), Under, 0},
		{"over as well", trunk(110, func(in *Input) { in.BranchPods = ptr(9) }), Over, 81},
		{"no branch ENIs: the first verdict says it", Input{InstanceType: "m5.large", MaxPods: 110}, Over, 0},
		{"a trunk that carries none", trunk(29, func(in *Input) { in.BranchENIs = ptr(0) }), Over, 0},
		{"nonsense", trunk(29, func(in *Input) { in.BranchPods = ptr(-3) }), OK, 9},
		{"IPv6 has addresses for all", trunk(110, func(in *Input) { in.IPv6 = true }), OK, 0},
		{"max-pods is not known", trunk(0, nil), NoVerdict, 0},
	}
	for _, tt := range tests {
		r := Compute(tt.in)
		if r.Verdict != tt.want || r.Exposed != tt.exposed {
			t.Errorf("%s: %q, exposed %d, want %q and %d\n%s", tt.name, r.Verdict, r.Exposed, tt.want, tt.exposed, printed(r))
		}
	}
}

// TestCompute_UnknownVCPUs: without vCPUs, the cap and everything it applies to are unknown.
func TestCompute_UnknownVCPUs(t *testing.T) {
	t.Parallel()
	facts := limits.Instance{Type: "x9.new", MaxENIs: 15, IPv4PerENI: 50, Hypervisor: "nitro"}
	in := Input{InstanceType: "x9.new", Instance: &facts}
	r := Compute(in)
	if r.Recommended != 0 || r.TotalCapacity != 737 || r.KubeReservedMiB != 0 {
		t.Errorf("%+v", r)
	}
	if text := printed(r); strings.Contains(text, "cap =") || strings.Contains(text, "recommended =") {
		t.Error(text)
	}
	if r = Compute(Input{InstanceType: "x9.new", Instance: &facts, IPv6: true}); r.Recommended != 0 {
		t.Errorf("%+v", r)
	}
	// Below the lower cap, no number of vCPUs changes the verdict. Between the caps it is unknown.
	for maxPods, want := range map[int]Verdict{109: Under, 110: OK, 250: OK, 737: OK, 738: Over} {
		in.MaxPods = maxPods
		if r := Compute(in); r.Verdict != want {
			t.Errorf("max-pods %d: %q, want %q", maxPods, r.Verdict, want)
		}
	}
	if r = Compute(Input{InstanceType: "x9.new", Instance: &facts, VCPUs: 64}); r.Recommended != 250 {
		t.Errorf("%+v", r)
	}
}

// TestCompute_GivenVCPUs: vCPUs that were given, as CPU options reduce them, take precedence
// over those of the table and of EC2.
func TestCompute_GivenVCPUs(t *testing.T) {
	t.Parallel()
	facts := limits.Instance{Type: "x9.new", MaxENIs: 15, IPv4PerENI: 50, Hypervisor: "nitro", VCPUs: 64}
	for _, tt := range []struct {
		in   Input
		want int
	}{
		{Input{InstanceType: "m5.24xlarge"}, 250},
		{Input{InstanceType: "m5.24xlarge", VCPUs: 24}, 110},
		{Input{InstanceType: "x9.new", Instance: &facts}, 250},
		{Input{InstanceType: "x9.new", Instance: &facts, VCPUs: 8}, 110},
	} {
		if r := Compute(tt.in); r.Recommended != tt.want {
			t.Errorf("%s with %d vCPUs: %d pods, want %d\n%s", tt.in.InstanceType, tt.in.VCPUs, r.Recommended, tt.want, printed(r))
		}
	}
}

func TestCompute_UnknownType(t *testing.T) {
	t.Parallel()
	r := Compute(Input{InstanceType: "m5.lagre", MaxPods: 29})
	if r.Verdict != UnknownType || r.Source != FromDefault || r.Recommended != 110 || r.TotalCapacity != 0 || r.KubeReservedMiB != 574 {
		t.Errorf("%+v", r)
	}
	if len(r.Suggestions) == 0 || r.Suggestions[0] != "m5.large" {
		t.Errorf("suggestions %q", r.Suggestions)
	}
	if got := printed(r); !strings.Contains(got, `"m5.lagre" is not in the table: this is kubelet's default`) {
		t.Errorf("terms do not say which rule it was:\n%s", got)
	}
	facts := limits.Instance{Type: "x9.new", MaxENIs: 4, IPv4PerENI: 15, Hypervisor: "nitro", VCPUs: 4,
		Cards: []limits.Card{{Index: 0, MaxENIs: 4}, {Index: 1, MaxENIs: 4}}}
	r = Compute(Input{InstanceType: "x9.new", Instance: &facts, MaxPods: 58})
	if r.Verdict != OK || r.Source != FromEC2 || r.TotalCapacity != 58 {
		t.Errorf("%+v", r)
	}
	// The table takes precedence over what EC2 reports about a type.
	r = Compute(Input{InstanceType: "m5.large", Instance: &facts})
	if r.Source != FromTable || r.TotalCapacity != 29 {
		t.Errorf("%+v", r)
	}
}

func TestCompute_Cards(t *testing.T) {
	t.Parallel()
	in := Input{InstanceType: "p4d.24xlarge", MultiNIC: true, EFAOnlyCards: []int{2}}
	want := []CardCost{{Card: 1, Interfaces: 1, Addresses: 1}, {Card: 3, Interfaces: 1, Addresses: 1}}
	r := Compute(in)
	if diff := cmp.Diff(want, r.Cards); diff != "" {
		t.Error(diff)
	}
	if r.TotalCapacity != 737 {
		t.Errorf("further cards changed the capacity to %d", r.TotalCapacity)
	}
	in.PrefixDelegation = true
	if r = Compute(in); len(r.Cards) != 2 || r.Cards[0].Addresses != 16 {
		t.Errorf("%+v", r.Cards)
	}
	in.IPv6 = true
	if r = Compute(in); len(r.Cards) != 2 || r.Cards[0].Addresses != Unlimited || !strings.Contains(printed(r), "card 3 = 2147483647: a /80 for pods") {
		t.Errorf("%+v\n%s", r.Cards, printed(r))
	}
	in.PrimaryExcluded, in.ExcludedENIs = true, 1
	if text := printed(Compute(in)); !strings.Contains(text, "on a separate interface") {
		t.Error(text)
	}
	in.MultiNIC = false
	if r = Compute(in); len(r.Cards) != 0 {
		t.Errorf("%+v", r.Cards)
	}
}

func printed(r Result) string {
	var b strings.Builder
	for _, term := range r.Terms() {
		fmt.Fprintf(&b, "%s = %d: %s\n", term.Name, term.Value, term.Reason)
	}
	return b.String()
}

// TestResult_Terms: every term is shown, in the order of the computation.
func TestResult_Terms(t *testing.T) {
	t.Parallel()
	r := Compute(Input{InstanceType: "p5.48xlarge", MaxPods: 200, MaxENI: 1, UnmanagedENIs: 1, ExcludedENIs: 1, TrunkAttached: true,
		CustomNetworking: true, PrefixDelegation: true, HostPods: ptr(5), MultiNIC: true, EFAOnlyCards: seq(2, 32)})
	want := `E = 2: interfaces of network card 0; the whole instance has 64
MAX_ENI = 1: limit for the pool, including the primary interface
unmanaged = 1: interfaces managed by others
excluded = 1: interfaces in subnets tagged kubernetes.io/role/cni=0
trunk = 1: the trunk interface carries no pod addresses of its own
primary = 1: custom networking: the primary interface serves no pods
U = 0: interfaces that serve pods
L = 50: IPv4 addresses per interface, including its primary one
S = 49: slots per interface
per slot = 16: each slot holds a /28
ip = 0: addresses for pods
br = 120: branch ENIs of the instance type
host = 5: host-network pods, counted
ipCapacity = 5: ip + host: pods that can run without a branch ENI
totalCapacity = 125: ip + br + host
cap = 250: the EKS convention for 192 vCPUs
recommended = 125: the lower of capacity and cap
card 1 = 16: spare addresses for pods with several interfaces, in addition to the interface's own; they add no pods
max-pods = 200: the node's capacity.pods
`
	if diff := cmp.Diff(want, printed(r)); diff != "" {
		t.Error(diff)
	}
}

func seq(from, to int) []int {
	var s []int
	for ; from < to; from++ {
		s = append(s, from)
	}
	return s
}

// FuzzCompute: no input makes the numbers contradict each other.
func FuzzCompute(f *testing.F) {
	f.Add("m5.large", 29, 0, 0, 0, 0, 0, uint16(0))
	f.Add("p5.48xlarge", 110, 1, 3, 9, 2, 7, uint16(0xffff))
	f.Add("", -5, -5, -5, -5, -5, -5, uint16(0x5555))
	f.Fuzz(func(t *testing.T, typ string, maxPods, maxENI, unmanaged, excluded, leftover, host int, flags uint16) {
		flag := func(n int) bool { return flags>>n&1 == 1 }
		bound := func(n int) int { return n % 100_000 }
		in := Input{InstanceType: typ, MaxPods: bound(maxPods), MaxENI: maxENI, UnmanagedENIs: bound(unmanaged), ExcludedENIs: bound(excluded),
			LeftoverSlots: leftover, PrefixDelegation: flag(0), CustomNetworking: flag(1), PodENI: flag(2), MultiNIC: flag(3), IPv6: flag(4),
			TrunkAttached: flag(5), NoTrunkSlot: flag(6), PrimaryExcluded: flag(7)}
		if flag(8) {
			in.HostPods = ptr(bound(host))
		}
		r := Compute(in)
		switch {
		case r.Interfaces < 0 || r.PodIPs < 0 || r.BranchENIs < 0 || r.HostPods < 0 || r.Short < 0 || r.Stranded < 0:
			t.Errorf("negative: %+v", r)
		case r.Recommended > r.TotalCapacity && r.Verdict != UnknownType:
			t.Errorf("recommends more than there is: %+v", r)
		case r.Short > 0 != (r.Verdict == Over) || r.Short > 0 && r.Stranded > 0:
			t.Errorf("short %d, stranded %d, %s", r.Short, r.Stranded, r.Verdict)
		case r.Exposed > 0 && r.BranchENIs == 0, r.Short > r.Exposed && r.BranchENIs > 0 && in.BranchPods == nil:
			t.Errorf("exposed %d, short %d", r.Exposed, r.Short)
		case (r.Verdict == NoVerdict) != (in.MaxPods <= 0 && r.Source != FromDefault):
			t.Errorf("verdict %q", r.Verdict)
		}
	})
}
