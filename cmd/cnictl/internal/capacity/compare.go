package capacity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"cnictl/capacity/compare"
	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// placement is what the pods need on nodes of one type.
type placement = document.CapacityFleet

// mostPods bounds --pods: ten times the pods of the largest clusters that Kubernetes
// supports.
const mostPods = 1_500_000

// compareOptions are the arguments and flags of capacity compare.
type compareOptions struct {
	nodes       nodeSettings
	cpu, memory string
	file        string
	region      string
	list        *output.List[placement]
}

func comparison(f *cli.Factory) *cobra.Command {
	o := &compareOptions{}
	o.list = &output.List[placement]{
		Columns: fleetColumns(), Key: func(r placement) string { return r.InstanceType }, Item: func(r placement) any { return r },
	}
	cmd := &cobra.Command{
		Use:   "compare [TYPE…]",
		Short: "Compare instance types for a number of pods",
		Long: `Show what a given number of pods needs on each instance type: nodes, vCPU and memory left for
each pod after kubeReserved, addresses held in subnets and how many of them no pod uses, and
with a price file the cost. TYPE may be a pattern; without one, the m7g types are compared.

A node takes as many pods as max-pods, its addresses and the requests of the pods allow. Two pods
of each node use the host's network. Without --max-pods, nodes have what cnictl recommends:
their capacity, but at most 110, or 250 above 30 vCPUs. Pods are spread evenly over the nodes,
and pools grow as upstream's do.

The price file is CSV with the header region,type,hourly_usd and optionally spot_usd. The cheapest
type comes first; without prices, the one that holds the fewest addresses.`,
		Example: "  {{.Command}} capacity compare --pods 500\n" +
			"  {{.Command}} capacity compare 'm7g.*' 'c7g.*' --pods 500 --pod-cpu 250m --pod-memory 512Mi\n" +
			"  {{.Command}} capacity compare 'm5.*' --pods 2000 --prefix-delegation --price prices.csv --region eu-west-1",
		ValidArgsFunction: completeTypes(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), f, args)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.nodes.pods, "pods", 0, "`N` pods with an address of the pool (required)")
	fs.StringVar(&o.cpu, "pod-cpu", "", "CPU that each pod requests, such as 250m")
	fs.StringVar(&o.memory, "pod-memory", "", "memory that each pod requests, such as 512Mi")
	fs.StringVar(&o.file, "price", "", "CSV `file` of prices: region,type,hourly_usd[,spot_usd]")
	fs.StringVar(&o.region, "region", "", "`region` of the prices; may be omitted if the file has only one")
	o.nodes.registerSettings(fs)
	_ = cmd.RegisterFlagCompletionFunc("region", cobra.NoFileCompletions) // fails only for unknown flags
	o.list.Register(f, cmd, false)
	return cmd
}

// defaultTypes are the types to compare if none is given.
var defaultTypes = []string{"m7g.*"}

func (o *compareOptions) run(ctx context.Context, f *cli.Factory, patterns []string) error {
	demand, err := o.demand()
	if err != nil {
		return err
	}
	prices, err := o.prices()
	if err != nil {
		return err
	}
	if len(patterns) == 0 {
		patterns = defaultTypes
	}
	known := tableOf(f)
	types, unknown := compare.Types(known.Table, patterns)
	if unknown != "" {
		if !strings.ContainsAny(unknown, "*?[") {
			_, err := known.lookup(unknown)
			return err
		}
		return &cli.Error{Code: cli.ExitNotFound, What: fmt.Sprintf("no instance type matches %q", unknown),
			Do: f.Name + " capacity type --all -o name"}
	}
	rows := make([]placement, 0, len(types))
	progress := newProgress(ctx, f)
	for n, i := range types {
		if !progress.say(func() string { return fmt.Sprintf("compared %d of %d types", n, len(types)) }) {
			break
		}
		rows = append(rows, fleetOf(o.settings(i), demand, prices))
	}
	progress.Erase()
	slices.SortStableFunc(rows, cheapest)
	partial := len(rows) < len(types)
	err = o.list.Print(f, rows, func(chosen []placement) any {
		return document.CapacityComparison{
			APIVersion: introspect.APIVersion, Kind: document.KindCapacityComparison, Pods: demand.Pods, Items: chosen,
			Partial: partial, Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
		}
	})
	if err == nil && partial {
		return &cli.Error{Code: cli.ExitInterrupted,
			What: fmt.Sprintf("interrupted: %d of %s compared", len(rows), human.Plural(len(types), "type is", "types are"))}
	}
	return err
}

func (o *compareOptions) settings(i limits.Instance) whatif.Settings {
	s := o.nodes.Settings
	s.Instance = i
	s.Trunk = s.Trunk && i.TrunkingCompatible != limits.No
	return s
}

// demand returns the pods to place, from the flags.
func (o *compareOptions) demand() (compare.Demand, error) {
	d := compare.Demand{Pods: o.nodes.pods}
	if d.Pods < 1 || d.Pods > mostPods {
		return d, cli.Usage("--pods is %d: want 1 to %d", d.Pods, mostPods)
	}
	if err := o.nodes.check(); err != nil {
		return d, err
	}
	if o.region != "" && o.file == "" {
		return d, cli.Usage("--region selects prices from a file: give --price too")
	}
	for _, x := range []struct {
		flag, text, example string
		to                  *int64
		unit                func(resource.Quantity) int64
	}{
		{"pod-cpu", o.cpu, "250m", &d.MilliCPU, func(q resource.Quantity) int64 { return q.MilliValue() }},
		{"pod-memory", o.memory, "512Mi", &d.MemoryMiB,
			func(q resource.Quantity) int64 { return int64(math.Ceil(q.AsApproximateFloat64() / (1 << 20))) }},
	} {
		if x.text == "" {
			continue
		}
		q, err := resource.ParseQuantity(x.text)
		if err != nil || q.Sign() <= 0 {
			return d, cli.Usage("invalid --%s %q: want a quantity above 0 such as %s", x.flag, x.text, x.example)
		}
		*x.to = max(1, x.unit(q))
	}
	return d, nil
}

// prices reads the price file; nil without one.
func (o *compareOptions) prices() (compare.Prices, error) {
	if o.file == "" {
		return nil, nil
	}
	in, err := os.Open(o.file)
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: "cannot read the price file", Why: err.Error()}
	}
	defer in.Close()
	prices, err := compare.ReadPrices(in, o.region)
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: "invalid price file " + o.file, Why: err.Error(),
			Do: "want lines such as eu-west-1,m5.large,0.107 below the header region,type,hourly_usd"}
	}
	return prices, nil
}

// fleetOf returns the row of a type.
func fleetOf(s whatif.Settings, d compare.Demand, prices compare.Prices) placement {
	c := compare.Place(s, d)
	r := placement{InstanceType: s.Instance.Type, VCPUs: known0(s.Instance.VCPUs), MemoryMiB: known0(s.Instance.MemoryMiB),
		MaxPods: known0(c.MaxPods), Bound: string(c.Bound), Why: c.Why}
	if c.Nodes == 0 {
		return r
	}
	if s.PrefixDelegation && !s.Instance.PrefixDelegation() {
		r.Why = "no prefix delegation: secondary addresses"
	}
	r.PodsPerNode, r.Nodes, r.Addresses, r.Wasted = &c.PodsPerNode, &c.Nodes, &c.Addresses, &c.Wasted
	r.PodMilliCPU, r.PodMemoryMiB = known0(c.MilliCPU*c.Nodes/d.Pods), known0(c.MemoryMiB*c.Nodes/d.Pods)
	if prices == nil {
		return r
	}
	p, ok := prices[r.InstanceType]
	if !ok {
		r.Why = "no price"
		return r
	}
	cost := func(hourly float64) *float64 {
		if hourly == 0 {
			return nil
		}
		usd := math.Round(hourly*float64(c.Nodes)*1e4) / 1e4
		return &usd
	}
	r.HourlyUSD, r.SpotUSD = cost(p.Hourly), cost(p.Spot)
	return r
}

// cheapest sorts by cost, then by addresses; unknown values come last.
func cheapest(a, b placement) int {
	return cmp.Or(nilLast(a.HourlyUSD, b.HourlyUSD, cmp.Compare), nilLast(a.Addresses, b.Addresses, cmp.Compare),
		nilLast(a.VCPUs, b.VCPUs, cmp.Compare), cmp.Compare(a.InstanceType, b.InstanceType))
}

// nilLast compares two values, of which nil sorts last.
func nilLast[T any](a, b *T, compare func(a, b T) int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return compare(*a, *b)
}

func fleetColumns() []query.Column[placement] {
	number := query.Count[placement]
	usd := func(name, header, title string, drop int, of func(placement) *float64) query.Column[placement] {
		return query.Column[placement]{
			Name: name, Header: header, Title: title, Right: true, Drop: drop,
			Text: func(r placement) string {
				if of(r) == nil {
					return show.Unknown
				}
				return strconv.FormatFloat(*of(r), 'f', 2, 64)
			},
			Number: func(r placement) (float64, bool) {
				if of(r) == nil {
					return 0, false
				}
				return *of(r), true
			},
		}
	}
	wide := number("max-pods", "MAX-PODS", "max-pods of a node", 0, func(r placement) *int { return r.MaxPods })
	wide.Wide = true
	return []query.Column[placement]{
		{Name: "type", Header: "TYPE", Title: "instance type", Text: func(r placement) string { return r.InstanceType }},
		number("nodes", "NODES", "nodes that hold the pods", 0, func(r placement) *int { return r.Nodes }),
		number("pods", "PODS/NODE", "pods that fit on a node with an address from its pool", 0, func(r placement) *int { return r.PodsPerNode }),
		{Name: "bound", Header: "BOUND", Title: "what limits the pods of a node: max-pods, addresses, cpu or memory", Drop: 3,
			Text: func(r placement) string { return cmp.Or(r.Bound, show.Unknown) }},
		number("cpu", "MCPU/POD", "thousandths of a vCPU for each pod, after kubeReserved", 2, func(r placement) *int { return r.PodMilliCPU }),
		number("memory", "MIB/POD", "MiB for each pod, after kubeReserved", 2, func(r placement) *int { return r.PodMemoryMiB }),
		number("addresses", "ADDRESSES", "addresses that all nodes take from subnets", 0, func(r placement) *int { return r.Addresses }),
		number("wasted", "WASTED", "addresses for pods that no pod uses", 1, func(r placement) *int { return r.Wasted }).Headed("HELD FREE"),
		usd("hourly", "USD/H", "cost of all nodes per hour, on demand", 0, func(r placement) *float64 { return r.HourlyUSD }),
		usd("spot", "SPOT/H", "cost of all nodes per hour, as spot instances", 4, func(r placement) *float64 { return r.SpotUSD }),
		wide,
		{Name: "why", Header: "NOTE", Title: "why figures are missing", Drop: 5, Text: func(r placement) string { return r.Why }},
	}
}
