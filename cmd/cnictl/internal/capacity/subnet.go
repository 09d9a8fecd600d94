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

// subnetOptions are the flags of capacity subnet.
type subnetOptions struct {
	nodeSettings
	primary []string
	used    int
	all     bool
	list    *output.List[fit]
}

func intoSubnets(f *cli.Factory) *cobra.Command {
	o := &subnetOptions{list: &output.List[fit]{
		Columns: fitColumns(), Key: func(r fit) string { return cmp.Or(r.ID, r.CIDR) }, Item: func(r fit) any { return r },
	}}
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
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), f, args) },
	}
	fs := cmd.Flags()
	o.register(f, cmd, fs)
	fs.BoolVar(&o.all, "all", false, "all IPv4 subnets of the cluster, as its nodes report them")
	fs.IntVar(&o.used, "used", 0, "`N` addresses of each subnet that others use: load balancers, databases, endpoints")
	fs.StringSliceVar(&o.primary, "node-subnet", nil, "with --custom-networking: `CIDR`s of the nodes' own subnets")
	o.list.Fit = func(args []string) {
		o.list.Columns[len(o.list.Columns)-1].Wide = !o.all && !o.named(args)
	}
	o.list.Register(f, cmd, false)
	return cmd
}

// named reports whether subnets of the cluster are named.
func (o *subnetOptions) named(args []string) bool {
	return slices.ContainsFunc(slices.Concat(args, o.primary), isID)
}

// checkArgs refuses arguments that do not go together.
func (o *subnetOptions) checkArgs(args []string) error {
	switch {
	case o.all && len(args) > 0:
		return cli.Usage("--all cannot be used with named subnets")
	case o.all && o.CustomNetworking:
		return cli.Usage("with --custom-networking name the subnets: those of the ENIConfigs, and with --node-subnet the nodes'")
	case !o.all && len(args) == 0:
		return cli.Usage("give a CIDR block such as 10.0.0.0/20, the ID of a subnet, or --all for those of the cluster")
	}
	return nil
}

// run prints how many of the nodes fit into the subnets.
func (o *subnetOptions) run(ctx context.Context, f *cli.Factory, args []string) error {
	if err := o.checkArgs(args); err != nil {
		return err
	}
	h, err := o.held(f)
	switch {
	case err != nil:
		return err
	case o.used < 0:
		return cli.Usage("--used is %d: want 0 or more", o.used)
	case (len(o.primary) > 0) != o.CustomNetworking:
		return cli.Usage("--custom-networking and --node-subnet must be used together")
	}
	p := placing{used: o.used, here: cluster{all: o.all, named: o.named(args)}, doc: document.CapacitySubnetList{
		APIVersion: introspect.APIVersion, Kind: document.KindCapacitySubnetList, Items: []fit{}, Errors: []document.NodeError{},
		SampledAt: f.Now().UTC(),
	}}
	here := &p.here
	if here.named || here.all {
		if err := here.read(ctx, f); err != nil {
			return err
		}
		args = append(args, here.ids()...)
	}
	if err := p.placeAll(f, h, o.instance, args, o.primary); err != nil {
		return err
	}
	if err := o.list.Print(f, p.doc.Items, func(chosen []fit) any { p.doc.Items = chosen; return p.doc }); err != nil {
		return err
	}
	if !output.Structured(f) && f.Globals.Output != output.CSV {
		p.note(f, h)
	}
	if !here.named && !here.all {
		return nil
	}
	return here.reading.Verdict(f)
}

// placing places nodes into subnets, planned ones and those of the cluster.
type placing struct {
	used int // addresses of each subnet that others use
	here cluster
	doc  document.CapacitySubnetList
}

// placeAll places the pods' interfaces of nodes into subnets; with primary, their primary interfaces into those.
func (p *placing) placeAll(f *cli.Factory, h whatif.Held, instance string, subnets, primary []string) error {
	node := subnet.Node{Interfaces: h.ENIs, Addresses: h.Slots}
	if h.Addresses != h.Slots {
		node = subnet.Node{Interfaces: h.ENIs, Prefixes: h.Slots}
	}
	p.doc.Node = document.CapacityNode{
		InstanceType: instance, Pods: h.Pods, ENIs: h.ENIs, Addresses: h.Addresses, Prefixes: node.Prefixes, Wasted: h.Wasted(),
		SubnetAddresses: h.SubnetAddresses(),
	}
	if len(primary) > 0 {
		node.Interfaces--
	}
	worst, best, err := p.place(f, subnets, document.RolePods, node, h.Pods)
	if err == nil && len(primary) > 0 {
		var w, b int
		w, b, err = p.place(f, primary, document.RoleNodes, subnet.Node{Interfaces: 1}, 0)
		worst, best = min(worst, w), min(best, b)
	}
	p.doc.Nodes, p.doc.NodesAtBest, p.doc.Pods, p.doc.PodsAtBest = worst, best, worst*h.Pods, best*h.Pods
	return err
}

// place adds subnets to the document, and returns how many nodes fit into all of them.
func (p *placing) place(f *cli.Factory, cidrs []string, role string, node subnet.Node, pods int) (worst, best int, err error) {
	for _, text := range cidrs {
		s, id, err := p.here.find(f, text)
		if err != nil {
			return 0, 0, err
		}
		usable := inventory.Usable(s.CIDR)
		if err := p.fits(s, id, text, usable); err != nil {
			return 0, 0, err
		}
		left := s.Without(p.used)
		low, high := left.Fit(node)
		worst, best = worst+low, best+high
		p.doc.Items = append(p.doc.Items, fit{
			ID: id, CIDR: s.CIDR.String(), Role: role, Usable: usable, Used: usable - left.Free,
			Free: left.Free, FreeBlocks: left.FreeBlocks(), PerNode: node.Total(),
			Nodes: low, NodesAtBest: high, Pods: low * pods, PodsAtBest: high * pods,
		})
	}
	return worst, best, nil
}

// fits refuses a subnet that cannot be beside those that are there, or is smaller than what others use of it.
func (p *placing) fits(s subnet.Subnet, id, text string, usable int) error {
	if slices.ContainsFunc(p.doc.Items, func(x fit) bool { return x.CIDR == s.CIDR.String() && x.ID == id }) {
		return cli.Usage("%s is given twice", text)
	}
	for _, x := range p.doc.Items {
		if other, err := netip.ParsePrefix(x.CIDR); err == nil && id == "" && x.ID == "" && other.Overlaps(s.CIDR) {
			return cli.Usage("%s overlaps %s: subnets of a VPC cannot overlap", text, x.CIDR)
		}
	}
	if id == "" && p.used > usable {
		return cli.Usage("--used is %d: %s has %d usable addresses", p.used, text, usable)
	}
	return nil
}

// note says below the table how many nodes fit, and what one holds.
func (p *placing) note(f *cli.Factory, h whatif.Held) {
	p.here.note(f)
	fit := "each fit"
	if p.doc.Nodes == 1 && p.doc.NodesAtBest == 1 {
		fit = "fits"
	}
	f.Note(fmt.Sprintf("%s with %s %s: %s; a node holds %s, %d of them used by no pod",
		counted(p.doc.Nodes, p.doc.NodesAtBest, p.here.further("node"), p.here.further("nodes")), human.Plural(h.Pods, "pod", "pods"), fit,
		counted(p.doc.Pods, p.doc.PodsAtBest, "pod", "pods"), human.Plural(h.SubnetAddresses(), "address", "addresses"), h.Wasted()))
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
		{Name: "for", Header: "FOR", Title: "pods: interfaces that serve pods; nodes: primary interfaces alone, with custom networking",
			Text: func(r fit) string { return r.Role }},
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
		return s, "", &cli.Error{Code: cli.ExitNotFound, What: text + " not found", Why: "no node reports it",
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
