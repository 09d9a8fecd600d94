package trunks

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/show"
)

// mostAsked bounds the nodes whose pods are read: each takes a request to the API server.
const mostAsked = 200

// Options are the arguments and flags of trunks.
type Options struct {
	Names []string // of nodes; none: all
	list  *output.List[row]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{list: newList()}
	return opts.list.Command(f, &cobra.Command{
		Use:     "trunks [NODE…]",
		Aliases: []string{"trunk"},
		Short:   "List trunks: branch ENIs in use and cooling, pods waiting for one",
		Long: `List the nodes with their support for security groups for pods: whether a trunk is attached,
pending, or not supported by the instance type, how many of the possible branch ENIs are in
use, and the pods that request vpc.amazonaws.com/pod-eni and don't have one yet.

Pods are read for up to 200 nodes; in a larger cluster give node names, --filter or --nodes.
With --watch the pods of all nodes are listed once and then watched; in clusters with more
than 20,000 they are read as without it, at most every 30 s.
The controller does not report cooling branch ENIs: COOLING counts those in use that belong
to no pod.`,
		Example: "  " + f.Name + " trunks\n  " + f.Name + " trunks --filter 'state!=attached'\n  " +
			f.Name + " trunks --sort-by -used -o wide\n  " + f.Name + " trunks ip-10-0-1-17 -o yaml",
	}, func(ctx context.Context, args []string) error {
		opts.Names = args
		return Run(ctx, f, opts)
	})
}

// Run lists the trunks once, or follows them until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if opts.list.Watching() {
		return opts.follow(ctx, f)
	}
	nodes, err := access.FleetOf(ctx, f, opts.Names)
	if err != nil {
		return err
	}
	defer nodes.Close()
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return err
	}
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
	r := readingOf(list)
	if !interrupted {
		r.fill(f, r.ask(ctx, f, api))
	}
	err = opts.list.Print(f, r.items, func(chosen []row) any {
		return document.TrunkList{
			APIVersion: introspect.APIVersion, Kind: document.KindTrunkList, Items: chosen, Unplaced: r.unplaced,
			Partial: list.Partial || len(r.errs) > 0, Errors: append(list.Errors, r.errs...), SampledAt: list.SampledAt,
		}
	})
	if err != nil {
		return err
	}
	r.warn(f)
	err = sweep.Verdict(f, list, interrupted)
	if err == nil && len(r.errs) > 0 && !f.Globals.AllowPartial {
		return cli.Exit(cli.ExitPartial)
	}
	return err
}

// follow prints the trunks as they change, until ctx ends.
func (opts *Options) follow(ctx context.Context, f *cli.Factory) error {
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	pods := newFollowed(f, api)
	group.Go(func() error { pods.run(ctx); return nil })
	group.Go(func() error {
		defer cancel()
		return opts.print(ctx, f, pods)
	})
	return group.Wait()
}

func (opts *Options) print(ctx context.Context, f *cli.Factory, pods *followed) error {
	shown := map[string]bool{}
	return follow.Fleet(ctx, f, follow.Options{Names: opts.Names, Whole: true, Order: opts.list.Ordered(), Show: func(now follow.Moment) error {
		follow.Left(f, slices.DeleteFunc(now.Gone, func(name string) bool { return !shown[name] })) // others were never shown
		r := readingOf(now.List())
		for _, item := range r.items {
			shown[item.Node] = true
		}
		pods.fill(ctx, &r)
		opts.list.Forget(now.Back)
		return opts.list.Follow(f, r.items)
	}})
}

// reading is one reading of all nodes and their pods.
type reading struct {
	items    []row
	ipv6     map[string]bool      // nodes whose pods have IPv6 addresses
	unplaced []document.BranchPod // empty if not asked
	errs     []document.NodeError // pods that could not be read
	skipped  bool                 // too many nodes to ask
}

// readingOf selects the nodes that have, or should have, trunks.
func readingOf(list document.NodeIPAMList) reading {
	r := reading{items: []row{}, unplaced: []document.BranchPod{}, ipv6: map[string]bool{}}
	for _, n := range list.Items {
		if item, ok := inventory.TrunkOf(store.NewNode(n)); ok {
			r.items = append(r.items, item)
			r.ipv6[item.Node] = n.Summary != nil && n.Summary.IPFamily == "ipv6"
		}
	}
	return r
}

// none is the key of pods that are on no node.
const none = ""

// asked are the pods that were read, by node.
type asked struct {
	pods    map[string][]watch.Pod
	errs    map[string]error
	skipped bool // too many nodes to ask
}

// ask lists the pods of each node, and those without a node.
func (r *reading) ask(ctx context.Context, f *cli.Factory, api *kube.Cluster) asked {
	a := asked{pods: map[string][]watch.Pod{}, errs: map[string]error{}}
	switch {
	case f.Recording != nil:
		for _, item := range r.items {
			if d := f.Recording.Detail(ctx, item.Node, watch.WantPods, watch.Query{}); d.Pods != nil {
				a.pods[item.Node] = d.Pods
			}
		}
		return a
	case api == nil || len(r.items) == 0:
		return a
	case len(r.items) > mostAsked:
		a.skipped = true
		return a
	}
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	names := []string{none}
	for _, item := range r.items {
		names = append(names, item.Node)
	}
	pods, errs := make([][]watch.Pod, len(names)), make([]error, len(names))
	var asking errgroup.Group
	asking.SetLimit(max(f.Globals.Concurrency, 1))
	for i, name := range names {
		asking.Go(func() error {
			pods[i], errs[i] = api.Pods(ctx, name)
			return nil
		})
	}
	_ = asking.Wait() // each records its own error
	for i, name := range names {
		if errs[i] != nil {
			a.errs[name] = errs[i]
		} else {
			a.pods[name] = pods[i]
		}
	}
	return a
}

// fill adds what Kubernetes knows about each node's pods, and about pods without a node.
func (r *reading) fill(f *cli.Factory, a asked) {
	r.skipped = a.skipped
	if err := a.errs[none]; err != nil {
		e := sweep.ErrorOf(none, err)
		e.Node = "kubernetes"
		r.errs = append(r.errs, e)
	}
	waiting, _ := inventory.SplitBranchPods(a.pods[none])
	for _, p := range waiting {
		if f.Globals.Kube.Shows(p.Namespace) {
			r.unplaced = append(r.unplaced, inventory.WaitingBranchPod(p))
		}
	}
	for i, item := range r.items {
		if err := a.errs[item.Node]; err != nil {
			r.errs = append(r.errs, sweep.ErrorOf(item.Node, err))
		} else if pods, ok := a.pods[item.Node]; ok {
			r.items[i] = inventory.SelectBranchPods(inventory.WithBranchPods(item, pods, r.ipv6[item.Node]), f.Globals.Kube.Shows)
		}
	}
}

// warn prints what the table does not show.
func (r *reading) warn(f *cli.Factory) {
	const most = 5
	if r.skipped {
		f.Warn("the pods of %d nodes were not read: give at most %d nodes to see which pods wait", len(r.items), mostAsked)
	}
	if len(r.errs) > 0 {
		f.Warn("pods could not be read: %s", sweep.Failed(r.errs[:min(most, len(r.errs))]))
	}
	if n := len(r.unplaced); n > 0 {
		var names []string
		for _, p := range r.unplaced[:min(most, n)] {
			names = append(names, p.Namespace+"/"+p.Name)
		}
		f.Warn("%s for a branch ENI, but no node accepts %s: %s", show.Plural(n, "pod waits", "pods wait"), map[bool]string{true: "it", false: "them"}[n == 1], strings.Join(names, ", "))
	}
}
