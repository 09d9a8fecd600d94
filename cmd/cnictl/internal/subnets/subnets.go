package subnets

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/subnets"
)

// Options are what subnets was asked for.
type Options struct {
	IDs  []string // none: all; one: its map
	list *cli.List[row]
}

// New builds the command; run takes the place of Run in tests of the flags.
func New(f *cli.Factory, run func(context.Context, *cli.Factory, *Options) error) *cobra.Command {
	if run == nil {
		run = Run
	}
	opts := &Options{list: newList()}
	cmd := &cobra.Command{
		Use:   "subnets [SUBNET…]",
		Short: "List the subnets: free, held, wasted addresses, free /28s, time left",
		Long: `List the subnets that nodes tell of: how many addresses are free as EC2 told last, how many
the nodes hold and waste, how many others have, how many /28 blocks may still become prefixes
and how many single addresses spoil, and when a subnet is empty if it goes on as measured.

With one SUBNET its map is shown, a sign for each /28. Nodes that could not be read count
among others; the time left needs --watch, or --replay of a recording.`,
		Example: "  " + f.Name + " subnets --sort-by free\n  " + f.Name + " subnets subnet-0123456789abcdef0\n  " +
			f.Name + " subnets --filter 'free28<10' -o wide\n  " + f.Name + " subnets -w",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: f.CompleteSubnets,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.IDs = args
			if err := opts.list.Check(f); err != nil {
				return err
			}
			return run(cmd.Context(), f, opts)
		},
	}
	opts.list.Register(f, cmd, true)
	return cmd
}

// reader keeps what several readings tell.
type reader struct {
	store  *store.Store
	trends subnets.Trends
}

// take adds a reading of all nodes and returns the subnets, those named or all.
func (r *reader) take(list introspect.NodeIPAMList, ids []string) []store.SubnetUse {
	for _, n := range list.Items {
		r.store.PutAt(n, list.SampledAt)
	}
	view := r.store.View()
	r.trends.Take(view)
	return named(view, ids)
}

// named are the subnets of a view, those named or all.
func named(view *store.View, ids []string) (uses []store.SubnetUse) {
	for _, u := range view.Subnets {
		if len(ids) == 0 || slices.Contains(ids, u.ID) {
			uses = append(uses, u)
		}
	}
	return uses
}

// rows says subnets in rows; ages count to now.
func (r *reader) rows(uses []store.SubnetUse, now time.Time) []row {
	out := make([]row, len(uses))
	for i, u := range uses {
		out[i] = row{Item(u, r.trends[u.ID]), now}
	}
	return out
}

// Run lists the subnets once, or until ctx ends, or shows the map of one.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	nodes, err := f.Fleet(ctx)
	if err != nil {
		return err
	}
	defer nodes.Close()
	r := &reader{store.New(), subnets.Trends{}}
	if opts.list.Watching() {
		return f.Watch(ctx, func(ctx context.Context) (bool, error) {
			list := nodes.Sweep(ctx, fleet.Query{ENIs: true})
			if ctx.Err() != nil {
				return false, nil // half a sweep would show subnets as lost
			}
			return cli.HasOriginal(list), opts.list.Follow(f, r.rows(r.take(list, opts.IDs), f.Now()))
		}, nil)
	}
	played, err := r.recorded(f)
	if err != nil {
		return err
	}
	list, interrupted := f.Sweep(ctx, nodes, fleet.Query{ENIs: played == nil})
	uses := r.take(list, opts.IDs)
	if played != nil { // a recording tells the ENIs of a node now and then: the view keeps them
		uses = named(played, opts.IDs)
	}
	if err := opts.found(f, uses, list); err != nil {
		return err
	}
	rows := r.rows(uses, f.Now())
	if len(opts.IDs) == 1 {
		err = showMap(f, rows[0], uses[0], list)
	} else {
		err = opts.list.Print(f, rows, func(chosen []row) any { return document(chosen, list) })
	}
	if err != nil {
		return err
	}
	return f.Verdict(list, interrupted)
}

// document is the list of the chosen rows.
func document(chosen []row, list introspect.NodeIPAMList) introspect.SubnetList {
	doc := introspect.SubnetList{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSubnetList, Items: make([]introspect.SubnetItem, len(chosen)),
		Partial: list.Partial, Errors: list.Errors, SampledAt: list.SampledAt,
	}
	for i, c := range chosen {
		doc.Items[i] = c.SubnetItem
	}
	return doc
}

// found refuses subnets that no node told of.
func (o *Options) found(f *cli.Factory, uses []store.SubnetUse, list introspect.NodeIPAMList) error {
	for _, id := range o.IDs {
		if slices.ContainsFunc(uses, func(u store.SubnetUse) bool { return u.ID == id }) {
			continue
		}
		e := &cli.Error{Code: cli.ExitNotFound, What: "subnet " + id + " not found", Why: "no node tells of it", Do: f.Name + " subnets"}
		if list.Partial {
			e.Code, e.Why = cli.ExitPartial, "no node that could be read tells of it; some could not be read, and one of them may"
		}
		if len(list.Errors) > 0 && !slices.ContainsFunc(list.Items, func(n introspect.NodeIPAM) bool { return n.Summary != nil }) {
			e.Code, e.Why = cli.ExitUnreachable, "none of the nodes could be read"
		}
		return e
	}
	return nil
}

// readings is at how many moments of a recording the subnets are looked at.
const readings = 120

// recorded measures the subnets of --replay from its beginning to the moment shown, and
// returns what is known then; null without a recording.
func (r *reader) recorded(f *cli.Factory) (*store.View, error) {
	if f.Globals.Replay == "" {
		return nil, nil
	}
	player, err := f.Recorded()
	if err != nil {
		return nil, err
	}
	from, _ := player.Range()
	to := player.Now()
	for i := range readings + 1 {
		player.Seek(from.Add(to.Sub(from) * time.Duration(i) / readings))
		r.trends.Take(player.View())
	}
	return player.View(), nil
}

// showMap prints the map of one subnet.
func showMap(f *cli.Factory, r row, u store.SubnetUse, list introspect.NodeIPAMList) error {
	doc := introspect.SubnetMap{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSubnetMap, SubnetItem: r.SubnetItem, Blocks: Blocks(u),
		Partial: list.Partial, Errors: list.Errors, SampledAt: list.SampledAt,
	}
	if f.Structured() {
		return f.PrintDocument(doc, false)
	}
	if f.Globals.Output == cli.OutputCSV {
		return f.PrintTable(blockTable(doc.Blocks))
	}
	return f.PrintLines(mapLines(f, doc, f.Now()))
}

// sentence says how the free addresses go on.
func sentence(r row) string {
	switch {
	case r.Readings < 2:
		return "measured with --watch, or by --replay of a recording"
	case r.LeftSeconds != nil:
		return left(r) + " left at " + change(r)
	}
	return strings.Join([]string{change(r), "(" + show.Plural(r.Readings, "reading", "readings") + "): too little for a forecast"}, " ")
}
