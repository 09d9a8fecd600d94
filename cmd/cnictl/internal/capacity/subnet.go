package capacity

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/capacity/subnet"
	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	listed "cnictl/cmd/cnictl/internal/subnets"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
)

// nodeSettings are the flags for the settings of planned nodes.
type nodeSettings struct {
	instance string
	pods     int
	whatif.Settings
}

func (n *nodeSettings) register(f *cli.Factory, cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(&n.instance, "type", "", "instance `type` of the nodes (required)")
	fs.IntVar(&n.pods, "pods", -1, "`N` pods with an address on each node (required)")
	fs.Lookup("pods").DefValue = "0" // which help does not show
	n.registerSettings(fs)
	_ = cmd.RegisterFlagCompletionFunc("type", completeTypes(f)) // fails only for unknown flags
}

func (n *nodeSettings) registerSettings(fs *pflag.FlagSet) {
	fs.IntVar(&n.MaxPods, "max-pods", 0, "kubelet's max-pods, at which the pool stops growing; 0: no limit")
	fs.IntVar(&n.MaxENI, "max-eni", 0, "MAX_ENI: at most `N` interfaces, the primary included; 0: no limit")
	fs.BoolVar(&n.PrefixDelegation, "prefix-delegation", false, "ENABLE_PREFIX_DELEGATION: a slot of an interface holds a /28")
	fs.BoolVar(&n.CustomNetworking, "custom-networking", false, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: the primary interface serves no pods")
	fs.BoolVar(&n.Trunk, "pod-eni", false, "ENABLE_POD_ENI: a trunk takes an interface")
	fs.IntVar(&n.WarmENI, "warm-eni-target", 1, "WARM_ENI_TARGET: `N` spare interfaces")
	fs.IntVar(&n.WarmIP, "warm-ip-target", 0, "WARM_IP_TARGET: `N` spare addresses")
	fs.IntVar(&n.MinimumIP, "minimum-ip-target", 0, "MINIMUM_IP_TARGET: at least `N` addresses")
	fs.IntVar(&n.WarmPrefix, "warm-prefix-target", 1, "WARM_PREFIX_TARGET: `N` spare prefixes")
}

// check rejects settings that no daemon accepts.
func (n *nodeSettings) check() error {
	for _, k := range whatif.Knobs() {
		s, text := n.Settings, k.Text(n.Settings)
		if k.Set(&s, text) != nil {
			return cli.Usage("--%s is %s: want 0 to %d", k.Flag, text, introspect.MaxTarget)
		}
	}
	return nil
}

// held returns what the pool of such a node holds.
func (n *nodeSettings) held(f *cli.Factory) (whatif.Held, error) {
	if err := n.check(); err != nil {
		return whatif.Held{}, err
	}
	if n.instance == "" || n.pods < 0 {
		return whatif.Held{}, cli.Usage("give --type and --pods of the nodes")
	}
	i, err := tableOf(f).lookup(n.instance)
	if err != nil {
		return whatif.Held{}, err
	}
	n.Instance = i
	effective(f, &n.Settings)
	if most := n.Capacity(); n.pods > most {
		return whatif.Held{},
			cli.Usage("%s not fit on %s with these settings: it has at most %s for pods", human.Plural(n.pods, "pod does", "pods do"), i.Type,
				human.Plural(most, "address", "addresses"))
	}
	h := whatif.Grow(n.Settings, n.pods, whatif.Upstream)
	if h.Pods < n.pods {
		return whatif.Held{}, cli.Usage("the pool stops growing at --max-pods %d: only %d of %d pods have an address", n.MaxPods, h.Pods, n.pods)
	}
	return h, nil
}

type fit = document.CapacitySubnet

func intoSubnets(f *cli.Factory) *cobra.Command {
	var nodes nodeSettings
	var primary []string
	var used int
	var all bool
	list := &output.List[fit]{
		Columns: fitColumns(), Key: func(r fit) string { return cmp.Or(r.ID, r.CIDR) }, Item: func(r fit) any { return r },
	}
	cmd := &cobra.Command{
		Use:   "subnet CIDR|SUBNET…",
		Short: "Show how many nodes and pods fit into subnets",
		Long: `Show how many nodes with a given number of pods fit into subnets, by what the pool of such a node
holds after growing: addresses for pods, spare ones, and a primary address for each interface.
EC2 reserves five addresses of each subnet.

Give the CIDR blocks of planned subnets, or the IDs of the cluster's own (--all: all of them)
to count the nodes that still fit into what EC2 last reported as free. /28 blocks in which nodes
hold addresses are known to be fragmented; where other addresses are is unknown.

With prefix delegation there are two bounds. Each prefix needs a free, aligned /28, and EC2
does not say where it puts single addresses: at best they share blocks that cannot become
prefixes anyway, at worst each one fragments another block.

With --custom-networking, CIDR are the subnets of the ENIConfigs, and --node-subnet those of
the nodes, which hold one address for each node. Pools grow as upstream's do, with pods that
arrive one at a time; after pods leave, a node may hold more for some time.`,
		Example: "  {{.Command}} capacity subnet 10.0.0.0/22 --type m5.large --pods 20\n" +
			"  {{.Command}} capacity subnet 10.0.0.0/20 10.0.16.0/20 --type m5.4xlarge --pods 50 --prefix-delegation --used 120\n" +
			"  {{.Command}} capacity subnet 100.64.0.0/18 --node-subnet 10.0.0.0/24 --type c5.xlarge --pods 40 --custom-networking\n" +
			"  {{.Command}} capacity subnet --all --type m5.large --pods 20",
		ValidArgsFunction: completion.Subnets(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			here := cluster{all: all, named: slices.ContainsFunc(slices.Concat(args, primary), isID)}
			switch {
			case all && len(args) > 0:
				return cli.Usage("--all cannot be used with named subnets")
			case all && nodes.CustomNetworking:
				return cli.Usage("with --custom-networking name the subnets: those of the ENIConfigs, and with --node-subnet the nodes'")
			case !all && len(args) == 0:
				return cli.Usage("give a CIDR block such as 10.0.0.0/20, the ID of a subnet, or --all for those of the cluster")
			}
			h, err := nodes.held(f)
			if err != nil {
				return err
			}
			if used < 0 {
				return cli.Usage("--used is %d: want 0 or more", used)
			}
			if (len(primary) > 0) != nodes.CustomNetworking {
				return cli.Usage("--custom-networking and --node-subnet must be used together")
			}
			node := subnet.Node{Interfaces: h.ENIs, Addresses: h.Slots}
			if h.Addresses != h.Slots {
				node = subnet.Node{Interfaces: h.ENIs, Prefixes: h.Slots}
			}
			doc := document.CapacitySubnetList{
				APIVersion: introspect.APIVersion, Kind: document.KindCapacitySubnetList, Items: []fit{}, Errors: []document.NodeError{},
				SampledAt: f.Now().UTC(),
				Node: document.CapacityNode{
					InstanceType: nodes.instance, Pods: h.Pods, ENIs: h.ENIs, Addresses: h.Addresses, Prefixes: node.Prefixes, Wasted: h.Wasted(),
					SubnetAddresses: h.SubnetAddresses(),
				},
			}
			if nodes.CustomNetworking {
				node.Interfaces--
			}
			place := func(cidrs []string, role string, node subnet.Node, pods int) (worst, best int, err error) {
				for _, text := range cidrs {
					s, id, err := here.find(f, text)
					if err != nil {
						return 0, 0, err
					}
					if slices.ContainsFunc(doc.Items, func(x fit) bool { return x.CIDR == s.CIDR.String() && x.ID == id }) {
						return 0, 0, cli.Usage("%s is given twice", text)
					}
					for _, x := range doc.Items {
						if other, err := netip.ParsePrefix(x.CIDR); err == nil && id == "" && x.ID == "" && other.Overlaps(s.CIDR) {
							return 0, 0, cli.Usage("%s overlaps %s: subnets of a VPC cannot overlap", text, x.CIDR)
						}
					}
					if usable := inventory.Usable(s.CIDR); id == "" && used > usable {
						return 0, 0, cli.Usage("--used is %d: %s has %d usable addresses", used, text, usable)
					}
					left := s.Without(used)
					low, high := left.Fit(node)
					worst, best = worst+low, best+high
					doc.Items = append(doc.Items, fit{
						ID: id, CIDR: s.CIDR.String(), Role: role, Usable: inventory.Usable(s.CIDR), Used: inventory.Usable(s.CIDR) - left.Free,
						Free: left.Free, FreeBlocks: left.FreeBlocks(), PerNode: node.Total(),
						Nodes: low, NodesAtBest: high, Pods: low * pods, PodsAtBest: high * pods,
					})
				}
				return worst, best, nil
			}
			if here.named || all {
				if err := here.read(cmd.Context(), f); err != nil {
					return err
				}
				args = append(args, here.ids()...)
			}
			worst, best, err := place(args, document.RolePods, node, h.Pods)
			if err == nil && nodes.CustomNetworking {
				var w, b int
				w, b, err = place(primary, document.RoleNodes, subnet.Node{Interfaces: 1}, 0)
				worst, best = min(worst, w), min(best, b)
			}
			if err != nil {
				return err
			}
			doc.Nodes, doc.NodesAtBest, doc.Pods, doc.PodsAtBest = worst, best, worst*h.Pods, best*h.Pods
			err = list.Print(f, doc.Items, func(chosen []fit) any { doc.Items = chosen; return doc })
			if err == nil && !output.Structured(f) && f.Globals.Output != output.CSV {
				here.note(f)
				fit := "each fit"
				if worst == 1 && best == 1 {
					fit = "fits"
				}
				f.Note(fmt.Sprintf("%s with %s %s: %s; a node holds %s, %d of them used by no pod",
					counted(worst, best, here.further("node"), here.further("nodes")), human.Plural(h.Pods, "pod", "pods"), fit,
					counted(doc.Pods, doc.PodsAtBest, "pod", "pods"), human.Plural(h.SubnetAddresses(), "address", "addresses"), h.Wasted()))
			}
			if err != nil || !here.named && !all {
				return err
			}
			return here.reading.Verdict(f)
		},
	}
	fs := cmd.Flags()
	nodes.register(f, cmd, fs)
	fs.BoolVar(&all, "all", false, "all IPv4 subnets of the cluster, as its nodes report them")
	fs.IntVar(&used, "used", 0, "`N` addresses of each subnet that others use: load balancers, databases, endpoints")
	fs.StringSliceVar(&primary, "node-subnet", nil, "with --custom-networking: `CIDR`s of the nodes' own subnets")
	list.Fit = func(args []string) {
		list.Columns[len(list.Columns)-1].Wide = !all && !slices.ContainsFunc(slices.Concat(args, primary), isID)
	}
	list.Register(f, cmd, false)
	return cmd
}

func between(worst, best int) string {
	if worst == best {
		return strconv.Itoa(worst)
	}
	return fmt.Sprintf("%d to %d", worst, best)
}

// counted formats a range with what it counts.
func counted(worst, best int, one, many string) string {
	if worst == best {
		return human.Plural(worst, one, many)
	}
	return between(worst, best) + " " + many
}

func fitColumns() []query.Column[fit] {
	number := func(name, header, title string, drop int, of func(fit) int) query.Column[fit] {
		return query.Count(name, header, title, drop, func(r fit) *int { n := of(r); return &n })
	}
	span := func(name, header, title string, worst, best func(fit) int) query.Column[fit] {
		return query.Column[fit]{
			Name: name, Header: header, Title: title, Right: true, Text: func(r fit) string { return between(worst(r), best(r)) },
			Number: func(r fit) (float64, bool) { return float64(worst(r)), true },
			CSV:    []query.Column[fit]{number(name, header, title, 0, worst), number(name+"-best", header+" AT BEST", title, 0, best)},
		}
	}
	return []query.Column[fit]{
		{Name: "cidr", Header: "CIDR", Title: "IPv4 CIDR block", Text: func(r fit) string { return r.CIDR }},
		{Name: "for", Header: "FOR", Title: "pods: interfaces that serve pods; nodes: primary interfaces alone, with custom networking", Text: func(r fit) string { return r.Role }},
		number("usable", "USABLE", "addresses, without the five that EC2 reserves", 3, func(r fit) int { return r.Usable }),
		number("used", "USED", "addresses that others use", 4, func(r fit) int { return r.Used }),
		number("free28", "FREE/28", "free /28 blocks at best, each usable as a prefix", 2, func(r fit) int { return r.FreeBlocks }),
		number("per-node", "PER NODE", "addresses that a node holds here", 0, func(r fit) int { return r.PerNode }),
		span("nodes", "NODES", "nodes that fit, at worst and at best", func(r fit) int { return r.Nodes },
			func(r fit) int { return r.NodesAtBest }),
		span("pods", "PODS", "pods that fit, at worst and at best", func(r fit) int { return r.Pods }, func(r fit) int { return r.PodsAtBest }),
		query.Words("subnet", "SUBNET", "ID of a subnet of the cluster", 0, func(r fit) string { return r.ID }),
	}
}

// cluster holds the subnets that the cluster's nodes use, if requested.
type cluster struct {
	all, named bool
	view       *store.View
	reading    *list.Reading
}

func isID(text string) bool { return strings.HasPrefix(text, "subnet-") }

func (c *cluster) read(ctx context.Context, f *cli.Factory) (err error) {
	c.reading, c.view, err = listed.Read(ctx, f)
	return err
}

// ids returns the subnets whose number of free addresses is known, for --all.
func (c *cluster) ids() (out []string) {
	if !c.all {
		return nil
	}
	for _, u := range c.view.Subnets {
		if inventory.Usable(u.Range) > 0 && u.Available != nil {
			out = append(out, u.ID)
		}
	}
	return out
}

// find returns a subnet: a planned one by its CIDR, one of the cluster by its id.
func (c *cluster) find(f *cli.Factory, text string) (s subnet.Subnet, id string, err error) {
	if !isID(text) {
		if s, err = subnet.Parse(text); err != nil {
			return s, "", cli.Usage("%s", err)
		}
		return s, "", nil
	}
	i := slices.IndexFunc(c.view.Subnets, func(u store.SubnetUse) bool { return u.ID == text })
	if i < 0 {
		return s, "", &cli.Error{Code: cli.ExitNotFound, What: "subnet " + text + " not found", Why: "no node reports it",
			Do: f.Name + " subnets" + f.SameNodes()}
	}
	s, ok := inventory.SubnetRoom(c.view.Subnets[i])
	if !ok {
		return s, "", &cli.Error{Code: cli.ExitNotFound, What: "the free addresses of " + text + " are unknown",
			Why: "no node reports EC2's count of them, or it is an IPv6 subnet", Do: f.Name + " subnets" + f.SameNodes()}
	}
	return s, text, nil
}

// note reports the subnets that --all leaves out.
func (c *cluster) note(f *cli.Factory) {
	if left := c.all && len(c.ids()) < len(c.view.Subnets); left {
		f.Note(fmt.Sprintf("left out: %s without a count of free IPv4 addresses",
			human.Plural(len(c.view.Subnets)-len(c.ids()), "subnet", "subnets")))
	}
}

// further adds "more" to a word for added nodes if the cluster already has some.
func (c *cluster) further(word string) string {
	if c.named || c.all {
		return "more " + word
	}
	return word
}
