package pod

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/query"
)

// Options are the arguments and flags of pod.
type Options struct{ Pod introspect.PodRef }

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{}
	return &cobra.Command{
		Use:   "pod [NAMESPACE/]NAME",
		Short: "Show where a pod's address comes from, or why it doesn't have one",
		Long: `Show one pod: its node, its address with ENI and subnet, its routes and rules, how the
kernel's state differs from the expected one, the branch ENI and VLAN of a pod with security
groups, and its history from the daemon and Kubernetes.

For a pod without an address it shows why: failed ADDs, what blocks the pool, events.

Without an API server (--targets) it looks for the pod on all nodes. With --replay it shows
what was recorded.`,
		Example:           "  " + f.Name + " pod shop/cart-7d9f-1\n  " + f.Name + " pod -n shop cart-7d9f-1 -o yaml",
		Args:              cli.Args(1, 1, "NAMESPACE/NAME"),
		ValidArgsFunction: completion.Pods(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Pod, err = f.Pod(args[0], kubeconfig.Namespace(f)); err != nil {
				return err
			}
			return Run(cmd.Context(), f, opts)
		},
	}
}

// Run shows the pod.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if err := output.Refuse(f, output.CSV); err != nil {
		return err
	}
	in, err := gather(ctx, f, opts.Pod)
	if err != nil {
		return err
	}
	doc := Report(in)
	if output.Structured(f) {
		err = output.PrintDocument(f, doc, false)
	} else {
		err = output.PrintLines(f, lines(f, doc))
	}
	if err != nil || !doc.Partial {
		return err
	}
	f.Warn("the report is incomplete: %s", sweep.Failed(doc.Errors))
	if f.Globals.AllowPartial {
		return nil
	}
	return cli.Exit(cli.ExitPartial)
}

// gather reads everything about a pod.
func gather(ctx context.Context, f *cli.Factory, ref introspect.PodRef) (Evidence, error) {
	in := Evidence{Pod: ref}
	nodes, err := access.Fleet(ctx, f)
	if err != nil {
		return in, err
	}
	defer nodes.Close()
	deadline, cancel := f.Deadline(ctx)
	defer cancel()
	if f.Recording != nil {
		return in.recorded(deadline, f, nodes)
	}
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return in, err
	}
	if api != nil {
		err = in.kubernetes(deadline, api)
		var failure *kube.Error
		switch {
		case errors.As(err, &failure) && failure.Code == http.StatusNotFound:
			e := &cli.Error{
				Code: cli.ExitNotFound, What: "pod " + ref.Namespace + "/" + ref.Name + " not found", Why: "there is no such pod in Kubernetes",
				Do: "kubectl get pods -n " + ref.Namespace + "; to see if a node still holds an address for it: " + f.Name + " ips --pod " +
					ref.Namespace + "/" + ref.Name,
			}
			// Failing to find suggestions is not worth another error.
			known, _ := api.PodNames(deadline, "", ref.Name)
			if len(known) == 0 {
				known, _ = api.PodNames(deadline, ref.Namespace, "")
			}
			return in, suggest(f, e, ref, known)
		case err != nil:
			return in, access.ClusterError(f, "read pod "+ref.Namespace+"/"+ref.Name, err)
		}
	} else if err := in.search(ctx, f, nodes); err != nil {
		return in, err
	}
	if in.Node != "" {
		in.daemon(deadline, nodes)
	}
	if ctx.Err() != nil {
		return in, cli.Exit(cli.ExitInterrupted)
	}
	if in.At.IsZero() { // its times are by the node's clock
		in.At = f.Now().UTC()
	}
	return in, nil
}

// kubernetes reads the pod and its events. Failing to read the events is not fatal.
func (in *Evidence) kubernetes(ctx context.Context, api *kube.Cluster) error {
	p, on, err := api.Pod(ctx, in.Pod.Namespace, in.Pod.Name)
	if err != nil {
		return err
	}
	in.Kube, in.Node = &p, on
	events, err := api.Events(ctx, kube.EventQuery{Namespace: in.Pod.Namespace})
	if err != nil {
		in.Errors = append(in.Errors, document.NodeError{Node: "events", Reason: introspect.ReasonTransport, Message: err.Error()})
	}
	for _, e := range events {
		if e.Kind == "Pod" && e.Object == in.Pod.Namespace+"/"+in.Pod.Name {
			in.Events = append(in.Events, e)
		}
	}
	return nil
}

// search finds the node that holds an address for the pod, or failed to assign one.
func (in *Evidence) search(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet) error {
	names := nodes.Names()
	found := make([]bool, len(names))
	errs := nodes.Ask(ctx, nil, func(ctx context.Context, i int, _ fleet.Target, c *client.Client) error {
		_, _, err := c.Pod(ctx, in.Pod)
		switch client.ReasonOf(err) {
		case "":
			found[i] = err == nil
			return err
		case introspect.ReasonNotFound:
			failures, _, err := c.Failures(ctx)
			for _, failure := range failures.Items {
				found[i] = found[i] || failure.Pod == in.Pod
			}
			return err
		case introspect.ReasonNoEndpoint, introspect.ReasonNotServed:
			pool, _, err := c.ENIs(ctx, client.DefaultCooldown)
			if err == nil {
				found[i] = len(interfacesOf(pool.ENIs, in.Pod, nil)) > 0
			}
			return err
		}
		return err
	})
	failed := 0
	for i, name := range names {
		if found[i] {
			in.Node = name
			return nil
		}
		if errs[i] != nil {
			failed++
		}
	}
	e := &cli.Error{Code: cli.ExitNotFound, What: "pod " + in.Pod.Namespace + "/" + in.Pod.Name + " not found",
		Why: "no daemon holds an address for it or has failed to assign it one"}
	switch {
	case ctx.Err() != nil:
		return cli.Exit(cli.ExitInterrupted)
	case failed == len(names):
		e.Code, e.Why = cli.ExitUnreachable, "none of the nodes could be read"
	case failed > 0:
		e.Code, e.Why = cli.ExitPartial, e.Why+"; some nodes could not be read, and the pod may be on one of them"
	}
	e.Do = f.Name + " nodes" + f.SameNodes()
	return suggest(f, e, in.Pod, podsOf(nodes.Sweep(ctx, fleet.Query{ENIs: true}).Items))
}

// podsOf returns the pods that have addresses.
func podsOf(items []document.NodeIPAM) (pods []introspect.PodRef) {
	for _, n := range items {
		for _, e := range n.ENIs {
			for _, c := range e.CIDRs {
				for _, a := range c.Addresses {
					if a.State == introspect.AddressAssigned && a.PodName != "" {
						pods = append(pods, introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName})
					}
				}
			}
		}
	}
	return pods
}

// suggest adds the pods that were probably meant to an error.
func suggest(f *cli.Factory, e *cli.Error, ref introspect.PodRef, known []introspect.PodRef) *cli.Error {
	near := near(ref, known)
	if len(near) == 0 {
		return e
	}
	e.Why += "; did you mean " + strings.Join(near, " or ") + "?"
	e.Do = f.Name + " pod " + near[0] + f.SameNodes()
	return e
}

// near returns the pods that may have been meant, as NAMESPACE/NAME: those of the same name
// in other namespaces, else those in the same namespace with a similar name.
func near(ref introspect.PodRef, known []introspect.PodRef) []string {
	var same []string
	var names []string
	for _, p := range known {
		switch {
		case p.Name == ref.Name:
			same = append(same, p.Namespace+"/"+p.Name)
		case p.Namespace == ref.Namespace:
			names = append(names, p.Name)
		}
	}
	slices.Sort(same)
	if same = slices.Compact(same); len(same) == 0 {
		slices.Sort(names)
		for _, name := range query.Near(ref.Name, slices.Compact(names)) {
			same = append(same, ref.Namespace+"/"+name)
		}
	}
	return same[:min(query.MostNear, len(same))]
}

// daemon reads what the node's daemon knows about the pod.
func (in *Evidence) daemon(ctx context.Context, nodes *fleet.Fleet) {
	errs := nodes.Ask(ctx, []string{in.Node}, func(ctx context.Context, _ int, _ fleet.Target, c *client.Client) error {
		pool, at, err := c.ENIs(ctx, client.DefaultCooldown)
		if err != nil {
			return err
		}
		in.ENIs, in.Asked, in.At = pool.ENIs, true, at.UTC()
		for _, e := range in.ENIs {
			if e.Trunk {
				in.TrunkENI = e.ID
			}
		}
		doc, _, err := c.Pod(ctx, in.Pod)
		switch client.ReasonOf(err) {
		case introspect.ReasonNotFound:
			in.Interfaces = []introspect.PodInterface{}
		case introspect.ReasonNoEndpoint, introspect.ReasonNotServed:
			in.Interfaces = interfacesOf(in.ENIs, in.Pod, in.Kube)
			return nil // upstream, or an older daemon: nothing more to read
		default:
			if err != nil {
				return err
			}
			in.Interfaces = doc.Interfaces
		}
		if failures, _, err := c.Failures(ctx); err == nil {
			in.Failures = failures.Items
		}
		if plan, _, err := c.Plan(ctx, introspect.PlanQuery{}); err == nil {
			in.Blocked, in.Plan = plan.Blocked, &plan
		}
		if events, err := c.Events(ctx, client.Cursor{}, client.EventsOptions{}); err == nil {
			in.Daemon = events.Items
		}
		summary, _, err := c.Summary(ctx)
		if err == nil {
			in.Waiting, in.Summary = summary.WaitingADDs, &summary
		}
		return nil
	})
	switch {
	case len(errs) == 0:
		in.Errors = append(in.Errors,
			document.NodeError{Node: in.Node, Reason: introspect.ReasonNoPod, Message: "its node is not among the nodes that are read"})
	case errs[0] != nil:
		e := document.NodeError{Node: in.Node, Reason: client.ReasonOf(errs[0]), Message: errs[0].Error()}
		var failed *client.Error
		if errors.As(errs[0], &failed) {
			e.Message = failed.Err.Error()
		}
		in.Errors = append(in.Errors, e)
	}
}

// interfacesOf finds a pod's addresses in a pool. If the pool does not name pods, it uses the
// addresses that Kubernetes has for the pod. Nothing is known about the wiring.
func interfacesOf(enis []introspect.NodeENI, ref introspect.PodRef, listed *watch.Pod) []introspect.PodInterface {
	out := []introspect.PodInterface{}
	var ips []string
	if listed != nil {
		ips = inventory.FromPool(*listed)
	}
	for _, e := range enis {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				named := a.PodName == ref.Name && a.PodNamespace == ref.Namespace
				if a.State != introspect.AddressAssigned || !named && (a.PodName != "" || !slices.Contains(ips, a.Address.String())) {
					continue
				}
				card, device := e.Card, e.Device
				out = append(out, introspect.PodInterface{
					Address: a.Address, ENIID: e.ID, Card: &card, Device: &device, SubnetID: e.SubnetID, RouteTable: e.RouteTable,
					AssignedAt: a.AssignedAt,
					Problem:    "the daemon does not report the kernel's state",
				})
			}
		}
	}
	return out
}
