package pods

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/node"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/show"
)

// Options are the arguments and flags of pods.
type Options struct {
	Names []string // of nodes; none: all
	list  *output.List[*inventory.Pod]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{list: node.NewPodList(true)}
	return opts.list.Command(f, &cobra.Command{
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
	}, func(ctx context.Context, args []string) error {
		opts.Names = args
		return Run(ctx, f, opts)
	})
}

// Run lists the pods once, or follows them until ctx ends.
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
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{ENIs: true})
	in := inventory.Pods{View: viewOf(list), Now: f.Now()}
	var failed []document.NodeError
	if !interrupted {
		deadline, cancel := f.Deadline(ctx)
		defer cancel()
		if in.Kube, err = opts.kube(deadline, f, api); err != nil {
			e := sweep.ErrorOf("kubernetes", err)
			failed = append(failed, e)
		}
		in.Why = why(deadline, f, nodes, waiting(&in))
	}
	rows := joined(&in)
	errs := append(list.Errors, failed...)
	err = opts.list.Print(f, rows, func(chosen []*inventory.Pod) any {
		doc := document.PodList{
			APIVersion: introspect.APIVersion, Kind: document.KindFleetPodList, SampledAt: list.SampledAt,
			Items: make([]document.PodItem, len(chosen)), Partial: list.Partial || len(failed) > 0, Errors: errs,
		}
		for i, r := range chosen {
			doc.Items[i] = document.PodItem{Node: r.Node, NodePodItem: r.Document()}
		}
		return doc
	})
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		f.Warn("pods without an address are not listed: %s", sweep.Failed(failed))
	} else if text := missing(&in); text != "" {
		f.Note(text)
	}
	err = sweep.Verdict(f, list, interrupted)
	if err == nil && len(failed) > 0 && !f.Globals.AllowPartial {
		return cli.Exit(cli.ExitPartial)
	}
	return err
}

// missing says which pods are not in the list; "" if all are.
func missing(in *inventory.Pods) string {
	switch k := in.Kube; {
	case k == nil:
		return "pods without an address are not listed: only Kubernetes knows them"
	case k.WithoutOnly:
		return "many pods: those of the host network and those with a branch ENI are left out"
	case k.Nodes != nil && len(k.Nodes) < len(in.View.Nodes):
		return "pods without an address: data from " + show.Count(len(k.Nodes)) + " of " + show.Plural(len(in.View.Nodes), "node", "nodes")
	}
	return ""
}

// viewOf returns the view of one reading of all nodes.
func viewOf(list document.NodeIPAMList) *store.View {
	s := store.New()
	for _, n := range list.Items {
		s.PutAt(n, list.SampledAt)
	}
	return s.View()
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

// kube lists the pods in Kubernetes; nil if there is no API server.
func (o *Options) kube(ctx context.Context, f *cli.Factory, api *kube.Cluster) (*watch.ClusterPods, error) {
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
	if all == nil || len(o.Names) == 0 && len(f.Globals.Nodes) == 0 && f.Globals.Selector == "" {
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
			one := inventory.PodWhy{}
			if d.Failures != nil {
				one.Failures = d.Failures.Items
			}
			if d.Plan != nil {
				one.Blocked = d.Plan.Blocked
			}
			if d.Failures != nil || d.Plan != nil {
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

// follow prints the pods as they change, until ctx ends.
func (o *Options) follow(ctx context.Context, f *cli.Factory) error {
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return err
	}
	nodes, err := access.FleetOf(ctx, f, o.Names) // for the reasons of failed ADDs
	if err != nil {
		return err
	}
	defer nodes.Close()
	var in inventory.Pods
	var listed time.Time
	warned := ""
	return follow.Fleet(ctx, f, follow.Options{Names: o.Names, ENIs: true, Whole: true, Order: o.list.Ordered(), Show: func(now follow.Moment) error {
		in.View, in.Now = now.View, now.Now
		every := listedEvery
		if in.Kube != nil && len(in.Kube.Pods) > manyPods {
			every = manyEvery
		}
		if listed.IsZero() || now.Now.Sub(listed) >= every {
			deadline, cancel := f.Deadline(ctx)
			all, err := o.kube(deadline, f, api)
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
		return o.list.Follow(f, joined(&in))
	}})
}
