package subnets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/collect"
	"cnictl/doctor/collect/ec2"
	"cnictl/doctor/evidence"
)

// options are the arguments and flags of subnets.
type options struct {
	ids        []string // none: all; one: its map
	freeBlocks int      // of the map: which nodes to terminate for so many free /28s; 0 = not asked
	aws        bool     // of the map: read EC2 for the owners of other addresses
	list       *output.List[row]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &options{list: newList()}
	cmd := opts.list.Command(f, &cobra.Command{
		Use:     "subnets [SUBNET…]",
		Aliases: []string{"subnet"},
		Short:   "List the subnets: free and held addresses, free /28s, time left",
		Long: `List the subnets that the nodes use: free addresses by EC2's last count, addresses held by
nodes and how many of these no pod uses, addresses used by others, /28 blocks that may still
become prefixes or are fragmented by single IPs, and the time until no address is left.

LEFT says how sure it is: "~14h, 4 readings" is a straight line through four of EC2's counts;
from a day of counts on, "~4d, 3d to 6d" has the true time in 80 % of all cases. The daemons
keep the counts of 14 days; upstream's do not: there it needs --watch, or --replay of a
recording. Nodes that could not be read count as others.

For one SUBNET a map is shown, with one character per /28: free, a prefix, how many of 16
addresses nodes hold, used by others, reserved; and which nodes fragment it. --aws reads the
subnet's interfaces from EC2 once, for the owners of all other addresses. --free-blocks N finds
the smallest set of nodes whose drain and termination frees N /28s, and prints the commands with
their risk; nothing is changed.`,
		Example: "  " + f.Name + " subnets --sort-by free\n  " + f.Name + " subnets subnet-0123456789abcdef0\n  " +
			f.Name + " subnets subnet-0123456789abcdef0 --aws --free-blocks 4\n  " +
			f.Name + " subnets --filter 'free28<10' -o wide\n  " + f.Name + " subnets -w",
		ValidArgsFunction: completion.Subnets(f),
	}, func(ctx context.Context, args []string) error {
		opts.ids = args
		return opts.run(ctx, f)
	})
	opts.register(cmd)
	cmd.AddCommand(newMap(f))
	return cmd
}

// newMap builds the command for the map of one subnet, which is what the list shows of one.
func newMap(f *cli.Factory) *cobra.Command {
	opts := &options{list: newList()}
	cmd := &cobra.Command{
		Use:   "map SUBNET",
		Short: "Map the /28s of one subnet, and which nodes to terminate for free ones",
		Long: `Map the /28s of one subnet, as "subnets SUBNET" does: free, a prefix, how many of 16 addresses
nodes hold, used by others, reserved; and which nodes fragment it.`,
		Example: "  " + f.Name + " subnets map subnet-0123456789abcdef0 --free-blocks 4\n  " +
			f.Name + " subnets map subnet-0123456789abcdef0 --aws -o json",
		Args:              cli.Args(1, 1, "SUBNET"),
		ValidArgsFunction: completion.Subnets(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ids = args
			return opts.run(cmd.Context(), f)
		},
	}
	opts.register(cmd)
	return cmd
}

// register adds the flags of the map.
func (o *options) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&o.freeBlocks, "free-blocks", 0, "of one SUBNET: find the smallest set of nodes whose termination frees `N` /28s")
	fs.BoolVar(&o.aws, "aws", false,
		"of one SUBNET: read its interfaces from EC2, with the AWS credentials of this shell; only DescribeNetworkInterfaces is called")
}

// check refuses flags of the map where there is none.
func (o *options) check(f *cli.Factory) error {
	switch mapped := o.freeBlocks != 0 || o.aws; {
	case o.freeBlocks < 0:
		return cli.Usage("--free-blocks %d: how many /28s to free", o.freeBlocks)
	case mapped && (len(o.ids) != 1 || o.list.Watching()):
		return cli.Usage("--free-blocks and --aws are for the map of one SUBNET, without --watch")
	case o.aws && f.Globals.Replay != "":
		return cli.Usage("--aws reads EC2 as it is now, not a recording: leave out --replay")
	}
	return nil
}

// named returns the requested subnets of a view, or all.
func named(view *store.View, ids []string) (uses []store.SubnetUse) {
	for _, u := range view.Subnets {
		if len(ids) == 0 || slices.Contains(ids, u.ID) {
			uses = append(uses, u)
		}
	}
	return uses
}

// rowsOf returns the rows of subnets; ages are relative to now.
func rowsOf(uses []store.SubnetUse, known inventory.Forecasts, now time.Time) []row {
	out := make([]row, len(uses))
	for i, u := range uses {
		out[i] = known.Subnet(u, now)
	}
	return out
}

// run lists the subnets, or shows the map of one.
func (o *options) run(ctx context.Context, f *cli.Factory) error {
	if err := o.check(f); err != nil {
		return err
	}
	if len(o.ids) == 1 && !o.list.Watching() {
		return o.mapped(ctx, f)
	}
	return o.command().Run(ctx, f, o.ids)
}

// command is the list of subnets.
func (o *options) command() list.Command[row] {
	known := inventory.Forecasts{}
	return list.Command[row]{
		List: o.list, Document: listOf,
		Read: func(ctx context.Context, f *cli.Factory, _ []string) (*list.Reading, error) { return read(ctx, f) },
		Rows: func(ctx context.Context, f *cli.Factory, r *list.Reading) ([]row, error) {
			uses := named(viewOf(ctx, f, r), o.ids)
			return rowsOf(uses, known, f.Now()), o.found(f, uses, r)
		},
		Follow: func(ctx context.Context, f *cli.Factory, ids []string) error {
			return follow.Fleet(ctx, f, follow.Options{ENIs: true, Histories: true, Whole: true, Order: o.list.Ordered(),
				Show: func(now follow.Moment) error {
					return o.list.Follow(f, rowsOf(named(now.View, ids), known, now.Now))
				}})
		},
	}
}

// mapped shows the map of one subnet.
func (o *options) mapped(ctx context.Context, f *cli.Factory) error {
	r, err := read(ctx, f)
	if err != nil {
		return err
	}
	defer r.Close()
	view := viewOf(ctx, f, r)
	uses := named(view, o.ids)
	if err := o.found(f, uses, r); err != nil {
		return err
	}
	if err := o.showMap(ctx, f, view, rowsOf(uses, inventory.Forecasts{}, f.Now())[0], r.NodeIPAMList); err != nil {
		return err
	}
	return r.Verdict(f)
}

// Read reads the subnets of the nodes, or of the recording.
func Read(ctx context.Context, f *cli.Factory) (*list.Reading, *store.View, error) {
	r, err := read(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	return r, viewOf(ctx, f, r), nil
}

func read(ctx context.Context, f *cli.Factory) (*list.Reading, error) {
	return list.Read(ctx, f, access.Fleet, fleet.Query{ENIs: f.Recording == nil})
}

// viewOf returns the view of one reading, with the counts of subnets that the nodes or the recording have.
func viewOf(ctx context.Context, f *cli.Factory, r *list.Reading) *store.View {
	if p := f.Recording; p != nil {
		return recorded(p, f.Globals.Nodes, r.Nodes.Names())
	}
	return sweep.WithHistory(ctx, r.Nodes, r.View())
}

// listOf returns the document of the chosen rows.
func listOf(r *list.Reading, chosen []row) any {
	doc := document.SubnetList{
		APIVersion: introspect.APIVersion, Kind: document.KindSubnetList, Items: make([]document.SubnetItem, len(chosen)),
		Partial: r.Partial, Errors: r.Errors, SampledAt: r.SampledAt,
	}
	for i, c := range chosen {
		doc.Items[i] = Item(c)
	}
	return doc
}

// found rejects subnets that no node has reported.
func (o *options) found(f *cli.Factory, uses []store.SubnetUse, r *list.Reading) error {
	for _, id := range o.ids {
		if slices.ContainsFunc(uses, func(u store.SubnetUse) bool { return u.ID == id }) {
			continue
		}
		what := "subnet " + id
		if strings.HasPrefix(id, "subnet-") {
			what = id
		}
		e := &cli.Error{Code: cli.ExitNotFound, What: what + " not found", Why: "no node reports it",
			Do: f.Name + " subnets" + f.SameNodes()}
		if r.Partial {
			e.Code, e.Why = cli.ExitPartial, "no node that could be read reports it; some nodes could not be read"
		}
		if len(r.Errors) > 0 && !slices.ContainsFunc(r.Items, func(n document.NodeIPAM) bool { return n.Summary != nil }) {
			e.Code, e.Why = cli.ExitUnreachable, "none of the nodes could be read"
		}
		return e
	}
	return nil
}

// recorded returns the fleet of a recording; if nodes were asked for, only those in names. A
// recording has the ENIs of a node only now and then, and the player keeps them.
func recorded(p *record.Player, asked, names []string) *store.View {
	full := p.View()
	if len(asked) > 0 {
		s := store.New().KeepENIs()
		for _, n := range full.Nodes {
			if slices.Contains(names, n.Metadata.Name) {
				s.PutAt(n.NodeIPAM, p.Now())
			}
		}
		full = s.View()
	}
	return full.WithReadings(p.Readings())
}

// freeingTime is how long the nodes to terminate are searched for.
const freeingTime = 2 * time.Second

// showMap prints the map of one subnet.
func (o *options) showMap(ctx context.Context, f *cli.Factory, view *store.View, r row, of document.NodeIPAMList) error {
	m := inventory.SubnetMapOf(view, r.SubnetUse)
	if o.aws {
		all, err := interfaces(ctx, f, of.Items, r.ID)
		if err != nil {
			return err
		}
		m = m.WithInterfaces(all, view.Nodes)
	}
	doc := document.SubnetMap{
		APIVersion: introspect.APIVersion, Kind: document.KindSubnetMap, SubnetItem: Item(r), Blocks: Blocks(m),
		Interfaces: m.Seen, Unplaced: m.Unplaced(), Owners: owners(m),
		Partial: of.Partial, Errors: of.Errors, SampledAt: of.SampledAt,
	}
	if free := m.FreeBlocks(); m.Seen {
		doc.FreeBlocks, doc.FragmentedBlocks = free, new(inventory.CountBlocks(m.Cells, store.BlockMixed))
	}
	if o.freeBlocks > 0 {
		limit, cancel := context.WithTimeout(ctx, freeingTime)
		d := m.Drain(limit, view.Nodes, o.freeBlocks)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(d.Nodes) == 0 {
			return &cli.Error{
				Code: cli.ExitNotFound, What: fmt.Sprintf("no nodes whose termination frees %s", human.Plural(o.freeBlocks, "/28", "/28s")),
				Why: "nodes alone have addresses in " + human.Plural(d.Possible, "/28", "/28s") + " of " + r.ID,
			}
		}
		doc.Freeing = freeing(d, m.HeldBy)
	}
	if output.Structured(f) {
		return output.PrintDocument(f, doc, false)
	}
	if f.Globals.Output == output.CSV {
		return output.PrintTable(f, blockTable(doc.Blocks))
	}
	return output.PrintLines(f, mapLines(f, doc, r))
}

// interfaces reads a subnet's interfaces from EC2, in the region of the nodes.
func interfaces(ctx context.Context, f *cli.Factory, nodes []document.NodeIPAM, subnet string) ([]evidence.Interface, error) {
	reader, err := ec2.New(ctx, ec2.Options{UserAgent: f.UserAgent()})
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: "EC2 cannot be read", Why: err.Error(), Do: "aws sts get-caller-identity"}
	}
	targets := make([]fleet.Target, len(nodes))
	for i, n := range nodes {
		targets[i] = fleet.Target{Name: n.Metadata.Name, Object: n.Object}
	}
	region, why := collect.RegionOf(targets, reader.ResolveRegion(""))
	if why != "" {
		f.Warn("%s", why)
	}
	read := reader.Interfaces(ctx, region, subnet)
	failed := &cli.Error{Code: cli.ExitUnreachable, What: "the interfaces of " + subnet + " could not be read from EC2"}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case read.Missing == evidence.MissingForbidden:
		failed.Why, failed.Do = "ec2:DescribeNetworkInterfaces is not allowed", "deploy/iam/cnictl-doctor.json has the permissions"
		return nil, failed
	case !read.OK():
		failed.Why, failed.Do = read.Missing, "aws sts get-caller-identity"
		return nil, failed
	}
	return read.Content, nil
}
