package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/capacity/maxpods"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

type row = document.CapacityType

// typeOptions are the arguments and flags of capacity type.
type typeOptions struct {
	plan       maxpods.Planned
	hostPods   int
	version    string
	expression string
	rules      []string
	managed    map[string]*int // max-pods by the rule of managed node groups, even if not shown
	all        bool
	explain    bool
	list       *output.List[row]
}

func types(f *cli.Factory) *cobra.Command {
	o := &typeOptions{}
	o.list = &output.List[row]{
		Columns: typeColumns(), Key: func(r row) string { return r.InstanceType }, Item: func(r row) any { return r },
	}
	cmd := &cobra.Command{
		Use:   "type TYPE…",
		Short: "Show the max-pods of instance types by every published rule and ours",
		Long: `Show the max-pods that every published rule and ours give to instance types. The published
rules are the README's formula (base), eni-max-pods.txt, max-pods-calculator.sh with and without
its cap, nodeadm, managed node groups, Auto Mode and Karpenter. Ours counts the addresses and
branch ENIs that pods can have, then applies the cap of EKS: 110, or 250 above 30 vCPUs.

For one TYPE each term of each rule is shown. A rule that gives no number says why. A managed
node group with several types applies the smallest value to all of its nodes.

-o karpenter prints an EC2NodeClass and a NodePool for each max-pods that the types have by the rule
cnictl, or by a single --rule; -o nodeadm a NodeConfig. They are to be merged into yours.`,
		Example: "  {{.Command}} capacity type m5.large\n  {{.Command}} capacity type m5.metal --prefix-delegation --explain\n" +
			"  {{.Command}} capacity type m5.large m5.xlarge --custom-networking\n  {{.Command}} capacity type --all --rule cnictl -o csv\n" +
			"  {{.Command}} capacity type m5.large m5.xlarge c6g.medium --prefix-delegation -o karpenter\n" +
			"  {{.Command}} capacity type m5.large --max-pods-expression '(default_enis - 1) * (ips_per_eni - 1) + 2'",
		ValidArgsFunction: completeTypes(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			if provisions(f) && len(o.rules) > 1 {
				return cli.Usage("-o %s takes a single --rule: nodes have one max-pods", f.Globals.Output)
			}
			return o.run(f, args)
		},
	}
	fs := cmd.Flags()
	in := &o.plan.Input
	fs.BoolVar(&in.PrefixDelegation, "prefix-delegation", false, "ENABLE_PREFIX_DELEGATION: a slot of an interface holds a /28")
	fs.BoolVar(&in.CustomNetworking, "custom-networking", false, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: the primary interface serves no pods")
	fs.BoolVar(&in.PodENI, "pod-eni", false, "ENABLE_POD_ENI: a trunk takes an interface and serves pods with security groups")
	fs.BoolVar(&in.IPv6, "ipv6", false, "an IPv6 cluster")
	fs.IntVar(&in.MaxENI, "max-eni", 0, "MAX_ENI: at most `N` interfaces, the primary included; 0: no limit")
	fs.IntVar(&o.plan.ReservedENIs, "reserved-enis", 0, "RESERVED_ENIS of Karpenter: `N` interfaces that serve no pods")
	fs.IntVar(&in.UnmanagedENIs, "efa-only", 0, "`N` EFA-only interfaces on the default network card")
	fs.IntVar(&o.plan.PodsPerCore, "pods-per-core", 0, "podsPerCore of Karpenter: at most `N` pods for each vCPU")
	fs.IntVar(&o.hostPods, "host-pods", 2, "`N` pods in the host's network")
	fs.IntVar(&in.VCPUs, "vcpus", 0, "vCPUs of the type, if the table lacks them or to override it")
	fs.StringVar(&o.version, "cni-version", "", "`version` of the VPC CNI, such as v1.18.0; default: a current release")
	fs.StringVar(&o.expression, "max-pods-expression", "", "maxPodsExpression of nodeadm: a CEL `expression` of default_enis, ips_per_eni and max_pods")
	fs.StringSliceVar(&o.rules, "rule", nil, "show these `rules`: "+strings.Join(maxpods.RuleNames(), ", "))
	fs.BoolVar(&o.all, "all", false, "show every known type")
	fs.BoolVar(&o.explain, "explain", false, "show where published sources disagree about the type, and why")
	// fails only for unknown flags
	_ = cmd.RegisterFlagCompletionFunc("rule", cobra.FixedCompletions(maxpods.RuleNames(), cobra.ShellCompDirectiveNoFileComp))
	o.list.Register(f, cmd, false)
	output.Forms(cmd, nil, formKarpenter, formNodeadm)
	return cmd
}

// provisioningRule is the rule whose max-pods nodes get.
func (o *typeOptions) provisioningRule() string {
	if len(o.rules) == 1 {
		return o.rules[0]
	}
	return maxpods.RuleOurs
}

// completeTypes completes instance types that were not given yet.
func completeTypes(f *cli.Factory) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		known, _ := readCache(f) // a broken cache is reported by the command itself
		return slices.DeleteFunc(slices.Collect(known.Types()), func(t string) bool {
			return slices.Contains(args, t) || !strings.HasPrefix(t, begun)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// check converts the flags to the plan.
func (o *typeOptions) check(cmd *cobra.Command, args []string) error {
	if o.all == (len(args) > 0) {
		return cli.Usage("give the TYPEs, or --all for every known one")
	}
	if cmd.Flags().Changed("host-pods") {
		o.plan.HostPods = &o.hostPods
	}
	if cmd.Flags().Changed("max-eni") {
		o.plan.MaxENIGiven = &o.plan.MaxENI
	}
	if o.version != "" {
		var err error
		if o.plan.CNI, err = parseVersion(o.version); err != nil {
			return cli.Usage("invalid --cni-version %q: %v", o.version, err)
		}
	}
	for _, name := range o.rules {
		if !slices.Contains(maxpods.RuleNames(), name) {
			return &cli.Error{Code: cli.ExitUsage, What: fmt.Sprintf("unknown rule %q", name),
				Do: "one of " + strings.Join(maxpods.RuleNames(), ", ")}
		}
	}
	if o.expression != "" {
		var err error
		if o.plan.Expression, err = compile(o.expression); err != nil {
			return &cli.Error{Code: cli.ExitUsage, What: "invalid --max-pods-expression", Why: err.Error(),
				Do: "use default_enis, ips_per_eni and max_pods, such as 'max_pods < 30 ? max_pods : 30'"}
		}
	}
	return nil
}

// parseVersion parses v1.18 or 1.18.0.
func parseVersion(text string) (maxpods.Version, error) {
	parts := strings.SplitN(strings.TrimPrefix(text, "v"), ".", 3)
	if len(parts) < 2 {
		return maxpods.Version{}, fmt.Errorf("want a release such as v1.18.0")
	}
	major, err := strconv.ParseUint(parts[0], 10, 16)
	minor, err2 := strconv.ParseUint(parts[1], 10, 16)
	if cmp.Or(err, err2) != nil {
		return maxpods.Version{}, fmt.Errorf("want a release such as v1.18.0")
	}
	return maxpods.Version{Major: int(major), Minor: int(minor)}, nil
}

func (o *typeOptions) run(f *cli.Factory, names []string) error {
	known := tableOf(f)
	o.plan.Table, o.managed = known.Table, map[string]*int{}
	if o.all {
		names = slices.Collect(known.Types())
	}
	rows := make([]row, 0, len(names))
	for _, name := range names {
		r, err := o.typeOf(known, name)
		if err != nil {
			return err
		}
		rows = append(rows, r)
		for _, w := range r.Warnings {
			if !o.all && !output.Structured(f) {
				f.Warn("%s", w)
			}
		}
	}
	if provisions(f) {
		return o.provision(f, o.list.Choose(rows))
	}
	if len(rows) == 1 && f.Globals.Output == "table" && len(o.list.Only) == 0 {
		return output.PrintLines(f, page(f, rows[0]))
	}
	err := o.list.Print(f, rows, func(chosen []row) any { return o.document(f, chosen) })
	if g := o.groupOf(rows); err == nil && g != nil && !o.all && !output.Structured(f) && f.Globals.Output != output.CSV {
		f.Note(fmt.Sprintf("a managed node group of these types applies max-pods %d, set by %s", g.MaxPods, g.InstanceType))
	}
	return err
}

// typeOf applies the rules to a type.
func (o *typeOptions) typeOf(known knownTypes, name string) (row, error) {
	p := o.plan
	p.InstanceType = name
	warnings, err := p.Problems()
	if err != nil {
		return row{}, cli.Usage("%s", err)
	}
	i, err := known.lookup(name)
	if err != nil {
		return row{}, err
	}
	i.VCPUs = cmp.Or(p.VCPUs, i.VCPUs)
	all := maxpods.Compute(p.Input)
	r := row{
		InstanceType: i.Type, ENIs: i.MaxENIs, IPv4PerENI: i.IPv4PerENI, VCPUs: known0(i.VCPUs), MemoryMiB: known0(i.MemoryMiB),
		IPCapacity: limited(all.IPCapacity), Total: limited(all.TotalCapacity), Rules: []document.CapacityRule{},
		Warnings: append([]string{}, warnings...), Explained: []string{},
	}
	if known.Read(i.Type) {
		r.RefreshedAt = &known.at
	}
	if o.explain {
		r.Explained = append(r.Explained, maxpods.Disagreements(i)...)
	}
	for _, rule := range maxpods.Rules(p) {
		if rule.Name == maxpods.RuleManaged {
			o.managed[r.InstanceType] = rule.MaxPods
		}
		if len(o.rules) > 0 && !slices.Contains(o.rules, rule.Name) {
			continue
		}
		out := document.CapacityRule{Name: rule.Name, MaxPods: rule.MaxPods, Terms: []introspect.MaxPodsTerm{}, Source: rule.Source,
			Why: rule.Why}
		for _, t := range rule.Terms {
			out.Terms = append(out.Terms, introspect.MaxPodsTerm{Name: t.Name, Value: t.Value})
		}
		r.Rules = append(r.Rules, out)
	}
	return r, nil
}

func known0(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func limited(n int) *int {
	if n >= maxpods.Unlimited {
		return nil
	}
	return &n
}

func (o *typeOptions) document(f *cli.Factory, rows []row) document.CapacityTypeList {
	return document.CapacityTypeList{
		APIVersion: introspect.APIVersion, Kind: document.KindCapacityTypeList, Items: rows, NodeGroup: o.groupOf(rows),
		Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
	}
}

// groupOf returns what a managed node group of several types applies; nil if unknown.
func (o *typeOptions) groupOf(rows []row) (out *document.NodeGroupType) {
	if len(rows) < 2 {
		return nil
	}
	for _, r := range rows {
		n := o.managed[r.InstanceType]
		if n == nil {
			return nil
		}
		if out == nil || *n < out.MaxPods {
			out = &document.NodeGroupType{MaxPods: *n, InstanceType: r.InstanceType}
		}
	}
	return out
}

func maxPods(r row, rule string) *int {
	for _, x := range r.Rules {
		if x.Name == rule {
			return x.MaxPods
		}
	}
	return nil
}

func typeColumns() []query.Column[row] {
	number := query.Count[row]
	out := []query.Column[row]{
		{Name: "type", Header: "TYPE", Title: "instance type", Text: func(r row) string { return r.InstanceType }},
		number("vcpus", "VCPUS", "vCPUs", 3, func(r row) *int { return r.VCPUs }),
		number("enis", "ENIS", "interfaces of the default network card", 2, func(r row) *int { return &r.ENIs }),
		number("ips", "IPS", "IPv4 addresses per interface, including its primary one", 2, func(r row) *int { return &r.IPv4PerENI }),
	}
	for n, name := range maxpods.RuleNames() {
		c := number(name, strings.ToUpper(name), "max-pods by the rule "+name, 0, func(r row) *int { return maxPods(r, name) })
		if name != maxpods.RuleOurs {
			c.Drop = 4 + len(maxpods.RuleNames()) - n
		}
		out = append(out, c)
	}
	wide := number("total", "TOTAL", "pods that can have an address or a branch ENI, and those of the host's network", 0,
		func(r row) *int { return r.Total })
	wide.Wide = true
	return append(out, wide)
}

// page shows one type, with the terms of each rule.
func page(f *cli.Factory, r row) []string {
	p := output.Page{Opts: output.TableOptions(f)}
	facts := fmt.Sprintf("%d interfaces × %d IPv4 addresses", r.ENIs, r.IPv4PerENI)
	if r.VCPUs != nil {
		facts += fmt.Sprintf("  %d vCPUs", *r.VCPUs)
	}
	if r.MemoryMiB != nil {
		facts += fmt.Sprintf("  %d MiB", *r.MemoryMiB)
	}
	if r.RefreshedAt != nil {
		facts += "  from EC2, read " + human.Age(f.Now().Sub(*r.RefreshedAt)) + " ago"
	}
	p.Line(table.Cell{Text: r.InstanceType, Class: paint.Head}, table.Cell{Text: "  " + facts})
	p.Lines = append(p.Lines, "")
	p.Labels = len(maxpods.RuleManaged) + 2
	for _, rule := range r.Rules {
		pods, terms := show.Unknown, make([]string, 0, len(rule.Terms))
		if rule.MaxPods != nil {
			pods = strconv.Itoa(*rule.MaxPods)
		}
		for _, x := range rule.Terms {
			if x.Value >= maxpods.Unlimited {
				terms = append(terms, x.Name+" unlimited")
			} else if x.Name != "maxPods" {
				terms = append(terms, fmt.Sprintf("%s %d", x.Name, x.Value))
			}
		}
		text := strings.Join(terms, ", ")
		if rule.Why != "" {
			text = strings.TrimPrefix(text+"; ", "; ") + rule.Why
		}
		p.Field(rule.Name, strings.TrimRight(fmt.Sprintf("%5s  %s", pods, text), " "))
	}
	for n, text := range r.Explained {
		if n == 0 {
			p.Title("Published sources disagree")
		}
		p.Text("- " + text)
	}
	return p.Lines
}
