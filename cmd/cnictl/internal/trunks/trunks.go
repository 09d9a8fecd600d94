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
	"cnictl/daemon/fleet/cluster"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/trunks"
	"cnictl/daemon/fleet/watch"
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
		Use:   "trunks [NODE…]",
		Short: "List trunks: branch ENIs in use and cooling, pods waiting for one",
		Long: `List the nodes with their support for security groups for pods: whether a trunk is attached,
pending, or not supported by the instance type, how many of the possible branch ENIs are in
use, and the pods that request vpc.amazonaws.com/pod-eni and don't have one yet.

Pods are read for up to 200 nodes; in a larger cluster give node names, --filter or --nodes.
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
	kube, err := access.Kubernetes(ctx, f)
	if err != nil {
		return err
	}
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
	r := readingOf(list)
	if !interrupted {
		r.pods(ctx, f, kube)
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
	kube, err := access.Kubernetes(ctx, f)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	return follow.Fleet(ctx, f, follow.Options{Names: opts.Names, Whole: true, Order: opts.list.Ordered(), Show: func(now follow.Moment) error {
		follow.Left(f, slices.DeleteFunc(now.Gone, func(name string) bool { return !shown[name] })) // others were never shown
		r := readingOf(now.List())
		for _, item := range r.items {
			shown[item.Node] = true
		}
		r.pods(ctx, f, kube)
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
		if item, ok := trunks.Node(store.NewNode(n)); ok {
			r.items = append(r.items, item)
			r.ipv6[item.Node] = n.Summary != nil && n.Summary.IPFamily == "ipv6"
		}
	}
	return r
}

// pods adds what Kubernetes knows about each node's pods, and about pods without a node.
func (r *reading) pods(ctx context.Context, f *cli.Factory, kube *cluster.Cluster) {
	switch {
	case kube == nil || len(r.items) == 0:
		return
	case len(r.items) > mostAsked:
		r.skipped = true
		return
	}
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	const none = "" // the key for pods that are on no node
	names := []string{none}
	for _, item := range r.items {
		names = append(names, item.Node)
	}
	pods, errs := make([][]watch.Pod, len(names)), make([]error, len(names))
	var asking errgroup.Group
	asking.SetLimit(max(f.Globals.Concurrency, 1))
	for i, name := range names {
		asking.Go(func() error {
			pods[i], errs[i] = kube.Pods(ctx, name)
			return nil
		})
	}
	_ = asking.Wait() // each records its own error
	for i, name := range names {
		switch {
		case errs[i] != nil:
			e := sweep.ErrorOf(name, errs[i])
			if name == none {
				e.Node = "kubernetes"
			}
			r.errs = append(r.errs, e)
		case name == none:
			waiting, _ := trunks.Split(pods[i])
			for _, p := range waiting {
				r.unplaced = append(r.unplaced, trunks.Waiting(p))
			}
		default:
			r.items[i-1] = trunks.WithPods(r.items[i-1], pods[i], r.ipv6[name])
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
			names = append(names, show.Safe(p.Namespace+"/"+p.Name))
		}
		f.Warn("%s for a branch ENI, but no node accepts %s: %s", show.Plural(n, "pod waits", "pods wait"), map[bool]string{true: "it", false: "them"}[n == 1], strings.Join(names, ", "))
	}
}
