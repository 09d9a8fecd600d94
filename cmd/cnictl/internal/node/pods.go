package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Pods lists the pods of a node with their addresses.
func Pods(ctx context.Context, f *cli.Factory, opts *Options) error {
	doc, rows, err := podsOf(ctx, f, opts)
	if err != nil {
		return err
	}
	err = opts.Pods.Print(f, rows, func(rows []*inventory.Pod) any {
		doc.Items = inventory.PodItems(rows)
		return doc
	})
	if err != nil || !doc.Partial {
		return err
	}
	for _, e := range doc.Errors {
		f.Warn("%s: %s", e.Node, e.Message)
	}
	if f.Globals.AllowPartial {
		return nil
	}
	return cli.Exit(cli.ExitPartial)
}

// podsOf reads a node's pods from the daemon and from Kubernetes, and joins the two.
func podsOf(ctx context.Context, f *cli.Factory, opts *Options) (doc document.NodePodList, rows []*inventory.Pod, _ error) {
	doc = document.NodePodList{APIVersion: introspect.APIVersion, Kind: document.KindPodList, Errors: []document.NodeError{}}
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return doc, nil, err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	if doc.Node = opts.Name; doc.Node == "" {
		doc.Node = nodes.Names()[0]
	}
	in := inventory.PodSides{}
	n, ok := nodes.Node(ctx, doc.Node, fleet.Query{ENIs: true})
	switch {
	case !ok:
		return doc, nil, access.NotFound(f, doc.Node, nodes.Names())
	case n.Error != nil && n.Error.Reason == introspect.ReasonCancelled:
		return doc, nil, cli.Exit(cli.ExitInterrupted)
	case n.ENIs != nil:
		in.Held, in.Asked = document.FlattenAddresses(doc.Node, n.ENIs), true
	}
	if n.Error != nil {
		doc.Errors = append(doc.Errors, document.NodeError{Node: doc.Node, Reason: n.Error.Reason, Message: n.Error.Message})
	}
	if f.Recording != nil {
		recordedPods(ctx, f, doc.Node, &in)
	} else {
		in.Failures, in.Blocked = whyNone(ctx, nodes, doc.Node, in.Asked)
	}
	in.Blocked = inventory.Blocked(store.NewNode(n), in.Blocked)
	if err := listed(ctx, f, doc.Node, &in); err != nil {
		doc.Errors = append(doc.Errors, document.NodeError{Node: "kubernetes", Reason: introspect.ReasonTransport, Message: err.Error()})
	}
	if !in.Asked && !in.Listed {
		return doc, nil, sweep.NodeFailed(f, n)
	}
	rows = inventory.JoinPods(in)
	doc.SampledAt, doc.Partial = f.Now().UTC(), len(doc.Errors) > 0
	for _, r := range rows {
		r.At = doc.SampledAt
	}
	return doc, rows, nil
}

// recordedPods takes the data of Kubernetes and the failed ADDs from a recording.
func recordedPods(ctx context.Context, f *cli.Factory, node string, s *inventory.PodSides) {
	d := f.Recording.Detail(ctx, node, watch.WantPods|watch.WantFailures|watch.WantPlan, watch.Query{})
	s.Pods, s.Listed = d.Pods, d.Pods != nil
	why, _ := inventory.WhyOf(d)
	s.Failures, s.Blocked = why.Failures, why.Blocked
}

// listed reads the node's pods from Kubernetes, if there is a cluster.
func listed(ctx context.Context, f *cli.Factory, node string, s *inventory.PodSides) error {
	kube, err := access.Kubernetes(ctx, f)
	if err != nil || kube == nil {
		return err
	}
	s.Pods, err = kube.Pods(ctx, node)
	s.Listed = err == nil
	return err
}

// whyNone reads why pods of a node got no address, and what would block ADDs now; an upstream
// node reports neither.
func whyNone(ctx context.Context, nodes *fleet.Fleet, name string, worth bool) (failures []introspect.Failure,
	blocked []introspect.BlockedCard) {
	if !worth {
		return nil, nil
	}
	nodes.Ask(ctx, []string{name}, func(ctx context.Context, _ int, _ fleet.Target, c *client.Client) error {
		if doc, _, err := c.Failures(ctx); err == nil {
			failures = doc.Items
		}
		plan, _, err := c.Plan(ctx, introspect.PlanQuery{})
		if err == nil {
			blocked = plan.Blocked
		}
		return err
	})
	return failures, blocked
}
