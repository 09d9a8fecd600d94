package maxpods

import (
	"fmt"

	"cnictl/capacity/limits"
)

// Names of the rules, in the order of [Rules].
const (
	RuleBase          = "base"
	RuleENIMaxPods    = "eni-max-pods"
	RuleCalculator    = "calculator"
	RuleCalculatorMax = "calculator-max"
	RuleNodeadm       = "nodeadm"
	RuleManaged       = "managed-node-group"
	RuleAutoMode      = "auto-mode"
	RuleKarpenter     = "karpenter"
	RuleOurs          = "cnictl"
)

// RuleNames lists the names of the rules.
func RuleNames() []string {
	return []string{RuleBase, RuleENIMaxPods, RuleCalculator, RuleCalculatorMax, RuleNodeadm, RuleManaged, RuleAutoMode, RuleKarpenter, RuleOurs}
}

// Rule is the max-pods that one published rule, or ours, gives for an instance type.
type Rule struct {
	Name    string
	MaxPods *int   // nil if none; Why says why
	Terms   []Term // of the computation, in its order
	Source  string // where the rule is published
	Why     string // what a person should know about the number; may be empty
}

// Planned is an instance type with the settings that its nodes will have.
type Planned struct {
	Input
	MaxENIGiven  *int // --cni-max-eni of the calculator, where 0 means no interface; nil if not given
	ReservedENIs int  // RESERVED_ENIS of Karpenter
	PodsPerCore  int  // podsPerCore of Karpenter; 0 if not set
	// Expression is nodeadm's maxPodsExpression; nil if not set.
	Expression func(defaultENIs, ipsPerENI, maxPods int) (int, error)
}

// currentCNI is the release that a plan's nodes run unless another is given.
var currentCNI = Version{1, 23}

// Problems checks a plan. An error names an impossible combination, warnings name settings
// without effect.
func (p Planned) Problems() (warnings []string, err error) {
	for name, n := range map[string]int{
		"max-eni": p.MaxENI, "reserved-enis": p.ReservedENIs, "efa-only": p.UnmanagedENIs, "pods-per-core": p.PodsPerCore, "vcpus": p.VCPUs,
	} {
		if n < 0 || n > mostPlanned {
			return nil, fmt.Errorf("%s is %d: want 0 to %d", name, n, mostPlanned)
		}
	}
	if p.HostPods != nil && (*p.HostPods < 0 || *p.HostPods > mostPlanned) {
		return nil, fmt.Errorf("host-pods is %d: want 0 to %d", *p.HostPods, mostPlanned)
	}
	i, known := p.facts()
	switch {
	case p.IPv6 && p.CustomNetworking:
		return nil, fmt.Errorf("custom networking does not work with IPv6: the daemon refuses AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG together with ENABLE_IPv6 (docs/configuration.md)")
	case p.IPv6 && known && !i.PrefixDelegation():
		return nil, fmt.Errorf("%s cannot run IPv6: it needs prefixes, which only Nitro and bare-metal instances have (EC2 user guide, prefix delegation; docs/configuration.md)", p.InstanceType)
	}
	if p.MaxENIGiven != nil && *p.MaxENIGiven == 0 {
		warnings = append(warnings, "MAX_ENI=0 means no limit to the daemon; the calculator takes --cni-max-eni 0 as no interface (docs/configuration.md, max-pods-calculator.sh)")
	}
	if p.PrefixDelegation && known && !i.PrefixDelegation() {
		warnings = append(warnings, fmt.Sprintf("%s has no prefix delegation: the daemon falls back to secondary addresses (EC2 user guide, prefix delegation; docs/configuration.md)", p.InstanceType))
	}
	return warnings, nil
}

// mostPlanned limits the numbers of a plan; it is far above what any instance has.
const mostPlanned = 1_000_000

// facts returns the facts that [Compute] uses.
func (p Planned) facts() (limits.Instance, bool) {
	c := computation{in: p.Input}
	known := c.facts()
	return c.i, known
}

// Rules applies every rule to a plan. For an unknown type no rule gives a number.
func Rules(p Planned) []Rule {
	i, known := p.facts()
	if !known {
		out := make([]Rule, 0, len(RuleNames()))
		for _, name := range RuleNames() {
			out = append(out, Rule{Name: name, Source: sources[name], Why: "unknown instance type"})
		}
		return out
	}
	// The script and managed node groups ask EC2. nodeadm and Karpenter use the published
	// table, and ask EC2 about types that it lacks.
	live := i
	if p.Table.Read(i.Type) {
		live.PublishedMaxENIs = i.MaxENIs
	}
	published := live
	if built, ok := limits.Lookup(i.Type); ok && built.PublishedMaxENIs > 0 {
		published = built
		published.VCPUs = i.VCPUs
	}
	calculator, most := p.calculator(live)
	managed := calculator
	managed.Name, managed.Why = RuleManaged, "applies unless the group has an AMI of its own; of several types the smallest value counts"
	if calculator.MaxPods == nil {
		managed.Why = calculator.Why
	}
	out := []Rule{base(i), listed(i), calculator, most, p.nodeadm(published), managed, autoMode(i), p.karpenter(published), p.ours(i)}
	for n := range out {
		out[n].Source = sources[out[n].Name]
	}
	return out
}

// sources says where the rules are published.
var sources = map[string]string{
	RuleBase:          "VPC CNI README",
	RuleENIMaxPods:    "eni-max-pods.txt of the aws-node image",
	RuleCalculator:    "max-pods-calculator.sh",
	RuleCalculatorMax: "max-pods-calculator.sh --show-max-allowed",
	RuleNodeadm:       "nodeadm of the AL2023 AMIs",
	RuleManaged:       "EKS user guide, managed node groups",
	RuleAutoMode:      "EKS user guide, Auto Mode",
	RuleKarpenter:     "Karpenter's ENI-limited density",
	RuleOurs:          "docs/capacity.md",
}

func (r *Rule) term(name string, value int, why string) {
	r.Terms = append(r.Terms, Term{name, value, why})
}

func (r *Rule) gives(n int, how string) {
	r.MaxPods = &n
	r.term("maxPods", n, how)
}

const (
	onCard   = "interfaces of the default network card"
	perENI   = "IPv4 addresses per interface, including its primary one"
	formula  = "E × (L − 1) + 2"
	unlisted = "no published file lists the type"
)

func base(i limits.Instance) Rule {
	r := Rule{Name: RuleBase}
	r.term("E", i.MaxENIs, onCard)
	r.term("L", i.IPv4PerENI, perENI)
	r.gives(Base(i.MaxENIs, i.IPv4PerENI), formula)
	return r
}

func listed(i limits.Instance) Rule {
	r := Rule{Name: RuleENIMaxPods}
	n, ok := FileRule(i.Type)
	if !ok {
		r.Why = unlisted + "; a daemon that cannot reach the API server assumes 110"
		return r
	}
	r.gives(n, "as listed")
	return r
}

// calculator is what the script prints without and with --show-max-allowed.
func (p Planned) calculator(i limits.Instance) (capped, most Rule) {
	version := p.CNI
	if version == (Version{}) {
		version = currentCNI
	}
	in := Calculator{
		Instance: i, CNIMajor: version.Major, CNIMinor: version.Minor, MaxENI: p.MaxENIGiven,
		PrefixDelegation: p.PrefixDelegation || p.IPv6, CustomNetworking: p.CustomNetworking,
	}
	all, recommended := in.Result()
	most.Name = RuleCalculatorMax
	most.term("E", publishedENIs(i), onCard)
	if p.MaxENIGiven != nil && *p.MaxENIGiven < publishedENIs(i) {
		most.term("max-eni", *p.MaxENIGiven, "--cni-max-eni")
	}
	if p.CustomNetworking {
		most.term("primary", -1, "custom networking: the primary interface serves no pods")
	}
	most.term("L", i.IPv4PerENI, perENI)
	switch {
	case in.PrefixDelegation && in.prefixes():
		most.term("per slot", limits.PrefixSize, "each slot holds a /28")
	case in.PrefixDelegation && i.BareMetal:
		most.Why = "the script ignores prefix delegation on bare metal, where the daemon does not"
	case in.PrefixDelegation:
		most.Why = "the script ignores prefix delegation here"
	}
	if all < 0 {
		most.Why = "no interface is left for pods: the script prints this all the same"
	}
	capped = Rule{Name: RuleCalculator, Terms: append([]Term{}, most.Terms...), Why: most.Why}
	most.gives(all, "interfaces × slots + 2")
	if i.VCPUs == 0 {
		capped.Terms, capped.Why = nil, noVCPUs
		return capped, most
	}
	capped.term("cap", Cap(i.VCPUs), fmt.Sprintf("for %d vCPUs", i.VCPUs))
	capped.gives(recommended, "the lower of capacity and cap")
	return capped, most
}

const noVCPUs = "vCPUs unknown: give --vcpus"

func (p Planned) nodeadm(i limits.Instance) Rule {
	r := Rule{Name: RuleNodeadm}
	if i.PublishedMaxENIs == 0 {
		r.Why = unlisted + "; nodeadm asks EC2, and uses 110 where that fails"
		return r
	}
	standard := Nodeadm(i)
	r.term("default_enis", i.PublishedMaxENIs, onCard)
	r.term("ips_per_eni", i.IPv4PerENI, perENI)
	if p.Expression == nil {
		r.gives(standard, formula)
		return r
	}
	r.term("max_pods", standard, formula)
	n, err := p.Expression(i.PublishedMaxENIs, i.IPv4PerENI, standard)
	if err != nil {
		r.Why = fmt.Sprintf("maxPodsExpression: %v; nodeadm then uses the standard value", err)
		r.gives(standard, formula)
		return r
	}
	r.gives(n, "maxPodsExpression")
	return r
}

func autoMode(i limits.Instance) Rule {
	r := Rule{Name: RuleAutoMode}
	all := Base(i.MaxENIs, i.IPv4PerENI)
	r.term("base", all, formula)
	r.gives(min(KubeletDefault, all), "the lower of 110 and that")
	return r
}

func (p Planned) karpenter(i limits.Instance) Rule {
	r := Rule{Name: RuleKarpenter}
	switch {
	case i.PublishedMaxENIs == 0:
		r.Why = unlisted
		return r
	case p.PodsPerCore > 0 && i.VCPUs == 0:
		r.Why = noVCPUs
		return r
	}
	r.term("E", i.PublishedMaxENIs, onCard)
	if p.ReservedENIs > 0 {
		r.term("reserved", -p.ReservedENIs, "RESERVED_ENIS")
	}
	if p.UnmanagedENIs > 0 {
		r.term("efa-only", -p.UnmanagedENIs, "EFA-only interfaces on the default card")
	}
	r.term("L", i.IPv4PerENI, perENI)
	if p.PodsPerCore > 0 {
		r.term("cores", p.PodsPerCore*i.VCPUs, fmt.Sprintf("podsPerCore %d × %d vCPUs", p.PodsPerCore, i.VCPUs))
	}
	r.gives(Karpenter(i, p.ReservedENIs, p.UnmanagedENIs, p.PodsPerCore), "interfaces × (L − 1) + 2, or 0 without an interface")
	if p.PrefixDelegation {
		r.Why = "Karpenter does not support prefix delegation: set maxPods in its EC2NodeClass"
	}
	return r
}

// ours applies [Compute].
func (p Planned) ours(i limits.Instance) Rule {
	result := Compute(p.Input)
	r := Rule{Name: RuleOurs, Terms: result.Terms()}
	if len(result.Notes) > 0 {
		r.Why = result.Notes[0]
	}
	if i.VCPUs == 0 {
		r.Why = noVCPUs
		return r
	}
	r.MaxPods = &result.Recommended
	return r
}
