package list

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// NewPods builds cnictl pods: the pods of all nodes with their addresses, or why they have none.
func NewPods(f *cli.Factory) *cobra.Command {
	l := Pods(true)
	return Command[*inventory.Pod]{
		List: l, Query: fleet.Query{ENIs: true}, Rows: podRows, Document: podDocument, Follow: podsFollowed(l),
	}.Build(f, &cobra.Command{
		Use:   "pods [NODE…]",
		Short: "List the pods: address, node and ENI of each, or why it has no address",
		Long: `List the pods of all nodes, or of the nodes given, with their addresses: those that have none
first, and why. "pod" shows one of them in full, "doctor pod" how to fix it.

STATE is waiting (it should have an address), unknown (it has one that the daemon does not
know), left-over (an address is held for a pod that is gone), assigned, branch (with a branch
ENI), host-network, or ended. Without an API server (--targets) only pods with an address are
known. In a cluster with more than 20,000 pods, those in the host's network and those with a
branch ENI are left out.`,
		Example: "  {{.Command}} pods\n  {{.Command}} pods -n shop\n  {{.Command}} pods --filter state=waiting -o wide\n" +
			"  {{.Command}} pods ip-10-0-1-17 --sort-by for\n  {{.Command}} pods -l topology.kubernetes.io/zone=eu-west-1a -w",
	})
}

// podRows joins what the nodes hold with the pods in Kubernetes.
func podRows(ctx context.Context, f *cli.Factory, r *Reading) ([]*inventory.Pod, error) {
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return nil, err
	}
	in := inventory.Pods{View: r.View(), Now: f.Now()}
	if !r.Interrupted {
		deadline, cancel := f.Deadline(ctx)
		defer cancel()
		if in.Kube, err = podsOf(deadline, f, api, r.Names); err != nil {
			r.Failed = append(r.Failed, sweep.ErrorOf("kubernetes", err))
		}
		in.Why = why(deadline, f, r.Nodes, waiting(&in))
	}
	rows := joined(&in)
	r.Remark = func() {
		if len(r.Failed) > 0 {
			f.Warn("pods without an address are not listed: %s", sweep.Failed(r.Failed))
		} else if text := missing(&in); text != "" {
			f.Note(text)
		}
	}
	return rows, nil
}

func podDocument(r *Reading, chosen []*inventory.Pod) any {
	doc := document.PodList{
		APIVersion: introspect.APIVersion, Kind: document.KindFleetPodList, SampledAt: r.SampledAt,
		Items: make([]document.PodItem, len(chosen)), Partial: r.Partial, Errors: r.Errors,
	}
	for i, p := range chosen {
		doc.Items[i] = document.PodItem{Node: p.Node, NodePodItem: p.Document()}
	}
	return doc
}

// missing says which pods are not in the list; "" if all are.
func missing(in *inventory.Pods) string {
	switch k := in.Kube; {
	case k == nil:
		return "pods without an address are not listed: only Kubernetes knows them"
	case k.WithoutOnly:
		return "many pods: those of the host network and those with a branch ENI are left out"
	case k.Nodes != nil && len(k.Nodes) < len(in.View.Nodes):
		return "pods without an address: data from " + show.Count(len(k.Nodes)) + " of " + human.Plural(len(in.View.Nodes), "node", "nodes")
	}
	return ""
}

// joined returns the rows of all nodes.
func joined(in *inventory.Pods) []*inventory.Pod {
	out := []*inventory.Pod{}
	in.Differ = in.Join(func(rows []*inventory.Pod) { out = append(out, rows...) })
	return out
}

// waiting returns the nodes that have pods without an address, and whose daemon can say why.
func waiting(in *inventory.Pods) (names []string) {
	in.Join(func(rows []*inventory.Pod) {
		for _, r := range rows {
			n := in.View.Node(r.Node)
			if r.State == document.PodWaiting && n != nil && n.State == document.StateLive && n.Source != document.SourceV1 {
				names = append(names, r.Node)
				return
			}
		}
	})
	return names
}

// podsOf lists the pods in Kubernetes, on the named nodes; nil if there is no API server.
func podsOf(ctx context.Context, f *cli.Factory, api *kube.Cluster, names []string) (*watch.ClusterPods, error) {
	find := watch.PodQuery{Namespace: f.Globals.Kube.Namespace}
	var all *watch.ClusterPods
	switch {
	case f.Recording != nil:
		all = f.Recording.Detail(ctx, "", watch.WantClusterPods, watch.Query{Find: find}).ClusterPods
	case api != nil:
		var err error
		if all, err = api.AllPods(ctx, find); err != nil {
			return nil, err
		}
	}
	if all == nil || len(names) == 0 && len(f.Globals.Nodes) == 0 && f.Globals.Selector == "" {
		return all, nil
	}
	some := *all // only those on the nodes asked for
	some.Pods = nil
	for _, p := range all.Pods {
		if p.Node != "" {
			some.Pods = append(some.Pods, p)
		}
	}
	return &some, nil
}

// why reads what the daemons of nodes report about failed ADDs.
func why(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, names []string) map[string]inventory.PodWhy {
	out := map[string]inventory.PodWhy{}
	if len(names) == 0 {
		return out
	}
	if f.Recording != nil {
		for _, name := range names {
			d := f.Recording.Detail(ctx, name, watch.WantFailures|watch.WantPlan, watch.Query{})
			if one, ok := inventory.WhyOf(d); ok {
				out[name] = one
			}
		}
		return out
	}
	read := make([]*inventory.PodWhy, len(names))
	nodes.Ask(ctx, names, func(ctx context.Context, i int, _ fleet.Target, c *client.Client) error {
		doc, _, err := c.Failures(ctx)
		if err != nil {
			return err
		}
		read[i] = &inventory.PodWhy{Failures: doc.Items}
		plan, _, err := c.Plan(ctx, introspect.PlanQuery{})
		if err == nil {
			read[i].Blocked = plan.Blocked
		}
		return err
	})
	for i, name := range names {
		if read[i] != nil {
			out[name] = *read[i]
		}
	}
	return out
}

// While pods are followed, all are listed every listedEvery, or every manyEvery if there are more than
// manyPods, as on the screen. Of at most whyNodesMost nodes the reasons are read.
const (
	listedEvery  = 15 * time.Second
	manyEvery    = time.Minute
	manyPods     = 1000
	whyNodesMost = 32
)

// podsFollowed prints the pods as they change.
func podsFollowed(l *output.List[*inventory.Pod]) func(context.Context, *cli.Factory, []string) error {
	return func(ctx context.Context, f *cli.Factory, asked []string) error {
		api, err := access.Kubernetes(ctx, f)
		if err != nil {
			return err
		}
		nodes, err := access.FleetOf(ctx, f, asked) // for the reasons of failed ADDs
		if err != nil {
			return err
		}
		defer nodes.Close()
		var in inventory.Pods
		var listed time.Time
		warned := ""
		return follow.Fleet(ctx, f,
			follow.Options{Names: asked, ENIs: true, Whole: true, Order: l.Ordered(), Show: func(now follow.Moment) error {
				in.View, in.Now = now.View, now.Now
				every := listedEvery
				if in.Kube != nil && len(in.Kube.Pods) > manyPods {
					every = manyEvery
				}
				if listed.IsZero() || now.Now.Sub(listed) >= every {
					deadline, cancel := f.Deadline(ctx)
					all, err := podsOf(deadline, f, api, asked)
					text := ""
					if err != nil {
						text = access.ClusterError(f, "list pods", err).Error()
					} else {
						in.Kube = all
					}
					if text != "" && text != warned {
						f.Warn("%s", text)
					}
					names := waiting(&in)
					in.Why = why(deadline, f, nodes, names[:min(len(names), whyNodesMost)])
					cancel()
					warned, listed = text, now.Now
				}
				return l.Follow(f, joined(&in))
			}})
	}
}

// Pods returns the list of a node's pods; with several, of the pods of several nodes, those
// that need attention first.
func Pods(several bool) *output.List[*inventory.Pod] {
	l := &output.List[*inventory.Pod]{
		Columns: tables.Pods(several), Free: "why", Class: podClass,
		In:   func(r *inventory.Pod) string { return r.Namespace },
		Key:  func(r *inventory.Pod) string { return r.ID },
		Item: func(r *inventory.Pod) any { return r.Document() },
	}
	for i := range l.Columns { // the reason is what the list is read for: other columns go before it is cut to a few letters
		if l.Columns[i].Name == "why" {
			l.Columns[i].Least = 34
		}
	}
	if several {
		l.Order, l.Clocks, l.Whole = "state,pod", []string{"for"}, true
		l.Key = func(r *inventory.Pod) string { return r.Node + " " + r.ID }
		l.Item = func(r *inventory.Pod) any { return document.PodItem{Node: r.Node, NodePodItem: r.Document()} }
	}
	return l
}

func podClass(r *inventory.Pod, column string) paint.Class {
	switch {
	case column == "for":
		return paint.Dim
	case column != "state" && column != "why":
		return paint.Plain
	}
	switch r.State {
	case document.PodHasAddress:
		return paint.Assigned
	case document.PodWaiting:
		return paint.Bad
	case document.PodUnknown, document.PodLeftOver:
		return paint.Warn
	}
	return paint.Dim
}
