package list

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
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/tables"
)

// mostAsked bounds the nodes whose pods are read: each takes a request to the API server.
const mostAsked = 200

// NewTrunks builds cnictl trunks: the branch ENIs of each node, and the pods that wait for one.
func NewTrunks(f *cli.Factory) *cobra.Command {
	l := trunkList()
	var all trunks
	return Command[document.TrunkItem]{
		List: l, Follow: trunksFollowed(l),
		Rows: func(ctx context.Context, f *cli.Factory, r *Reading) (_ []document.TrunkItem, err error) {
			all, err = trunksOf(ctx, f, r)
			return all.items, err
		},
		Document: func(r *Reading, chosen []document.TrunkItem) any {
			return document.TrunkList{
				APIVersion: introspect.APIVersion, Kind: document.KindTrunkList, Items: chosen, Unplaced: all.unplaced,
				Partial: r.Partial, Errors: r.Errors, SampledAt: r.SampledAt,
			}
		},
	}.Build(f, &cobra.Command{
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
	})
}

// trunksOf returns the trunks of a reading, with what Kubernetes knows about their pods.
func trunksOf(ctx context.Context, f *cli.Factory, r *Reading) (trunks, error) {
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return trunks{}, err
	}
	t := trunksIn(r.NodeIPAMList)
	if !r.Interrupted {
		t.fill(f, t.ask(ctx, f, api))
	}
	r.Failed, r.Remark = t.errs, func() { t.warn(f) }
	return t, nil
}

// trunksFollowed prints the trunks as they change.
func trunksFollowed(l *output.List[document.TrunkItem]) func(context.Context, *cli.Factory, []string) error {
	return func(ctx context.Context, f *cli.Factory, names []string) error {
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
			shown := map[string]bool{}
			return follow.Fleet(ctx, f, follow.Options{Names: names, Whole: true, Order: l.Ordered(), Show: func(now follow.Moment) error {
				follow.Left(f, slices.DeleteFunc(now.Gone, func(name string) bool { return !shown[name] })) // others were never shown
				t := trunksIn(now.List())
				for _, item := range t.items {
					shown[item.Node] = true
				}
				pods.fill(ctx, &t)
				l.Forget(now.Back)
				return l.Follow(f, t.items)
			}})
		})
		return group.Wait()
	}
}

// trunks are those of one reading, with their pods.
type trunks struct {
	items    []document.TrunkItem
	ipv6     map[string]bool      // nodes whose pods have IPv6 addresses
	unplaced []document.BranchPod // empty if not asked
	errs     []document.NodeError // pods that could not be read
	skipped  bool                 // too many nodes to ask
}

// trunksIn selects the nodes that have, or should have, trunks.
func trunksIn(list document.NodeIPAMList) trunks {
	r := trunks{items: []document.TrunkItem{}, unplaced: []document.BranchPod{}, ipv6: map[string]bool{}}
	for _, n := range list.Items {
		if item, ok := inventory.TrunkOf(store.NewNode(n)); ok {
			r.items = append(r.items, item)
			r.ipv6[item.Node] = n.Summary != nil && n.Summary.IPFamily == "ipv6"
		}
	}
	return r
}

// unbound is the key of pods that are on no node.
const unbound = ""

// asked are the pods that were read, by node.
type asked struct {
	pods    map[string][]watch.Pod
	errs    map[string]error
	skipped bool // too many nodes to ask
}

// ask lists the pods of each node, and those without a node.
func (r *trunks) ask(ctx context.Context, f *cli.Factory, api *kube.Cluster) asked {
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
	names := []string{unbound}
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
func (r *trunks) fill(f *cli.Factory, a asked) {
	r.skipped = a.skipped
	if err := a.errs[unbound]; err != nil {
		e := sweep.ErrorOf(unbound, err)
		e.Node = "kubernetes"
		r.errs = append(r.errs, e)
	}
	waiting, _ := inventory.SplitBranchPods(a.pods[unbound])
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
func (r *trunks) warn(f *cli.Factory) {
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
		f.Warn("%s for a branch ENI, but no node accepts %s: %s", human.Plural(n, "pod waits", "pods wait"),
			map[bool]string{true: "it", false: "them"}[n == 1], strings.Join(names, ", "))
	}
}

func trunkList() *output.List[document.TrunkItem] {
	return &output.List[document.TrunkItem]{
		Columns: tables.Trunks(), Class: trunkClass, Free: "pods",
		Key: func(r document.TrunkItem) string { return r.Node }, Whole: true,
		Item: func(r document.TrunkItem) any { return r },
	}
}

// trunkClass is the colour of a cell, by its meaning.
func trunkClass(r document.TrunkItem, column string) paint.Class {
	taken, known := inventory.BranchShare(r)
	switch {
	case column == "state" && r.State == document.TrunkAttached:
		return paint.OK
	case column == "state", column == "waiting" && r.Waiting != nil && *r.Waiting > 0:
		return paint.Warn
	case (column == "used" || column == "left") && known && taken >= 1:
		return paint.Bad
	case column == "trunk", column == "type":
		return paint.Dim
	}
	return paint.Plain
}
