package pod

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/cluster"
)

// Options are what pod was asked for.
type Options struct{ Pod introspect.PodRef }

// New builds the command; run takes the place of Run in tests of the flags.
func New(f *cli.Factory, run func(context.Context, *cli.Factory, *Options) error) *cobra.Command {
	if run == nil {
		run = Run
	}
	opts := &Options{}
	return &cobra.Command{
		Use:   "pod NAMESPACE/NAME",
		Short: "Show where the address of a pod came from, or why it has none",
		Long: `Show one pod: the node, ENI and subnet that its address is of, its route table and rules,
what the kernel has beside what it should have; of a pod with its own security groups the
branch ENI and VLAN; and what happened to it, as its node's daemon and Kubernetes tell.

Of a pod without an address it says why: failed ADDs, what blocks the pool, events.
Without an API server (--targets) the node is found by asking all of them. Of a recording it
is the addresses of the pod, where its node's were recorded.`,
		Example:           "  " + f.Name + " pod shop/cart-7d9f-1\n  " + f.Name + " pod -n shop cart-7d9f-1 -o yaml",
		Args:              cli.Args(1, 1, "NAMESPACE/NAME"),
		ValidArgsFunction: completion.Pods(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if namespace := f.Globals.Kube.Namespace; namespace != "" && !strings.Contains(name, "/") {
				name = namespace + "/" + name
			}
			var err error
			if opts.Pod, err = cli.ParsePod(name); err != nil {
				return &cli.Error{Code: cli.ExitUsage, What: args[0] + " names no pod", Why: err.Error(), Do: f.Name + " pod NAMESPACE/NAME, or -n NAMESPACE NAME"}
			}
			return run(cmd.Context(), f, opts)
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
	f.Warn("in part only: %s", sweep.Failed(doc.Errors))
	if f.Globals.AllowPartial {
		return nil
	}
	return cli.Exit(cli.ExitPartial)
}

// gather reads what there is about a pod.
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
	kube, err := access.Kubernetes(ctx, f)
	if err != nil {
		return in, err
	}
	if kube != nil {
		err = in.kubernetes(deadline, kube)
		var failure *cluster.Error
		switch {
		case errors.As(err, &failure) && failure.Code == http.StatusNotFound:
			return in, &cli.Error{
				Code: cli.ExitNotFound, What: "pod " + ref.Namespace + "/" + ref.Name + " not found", Why: "Kubernetes has no such pod",
				Do: "kubectl get pods -n " + ref.Namespace + "; whether a node still holds an address for it: " + f.Name + " ips --pod " + ref.Namespace + "/" + ref.Name,
			}
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
	if in.At.IsZero() { // the node's clock is what its times are of
		in.At = f.Now().UTC()
	}
	return in, nil
}

// kubernetes reads the pod and its events. Without the events the rest stands.
func (in *Evidence) kubernetes(ctx context.Context, kube *cluster.Cluster) error {
	p, on, err := kube.Pod(ctx, in.Pod.Namespace, in.Pod.Name)
	if err != nil {
		return err
	}
	in.Kube, in.Node = &p, on
	events, err := kube.Events(ctx, cluster.EventQuery{Namespace: in.Pod.Namespace})
	if err != nil {
		in.Errors = append(in.Errors, introspect.NodeError{Node: "events", Reason: introspect.ReasonTransport, Message: err.Error()})
	}
	for _, e := range events {
		if e.Kind == "Pod" && e.Object == in.Pod.Namespace+"/"+in.Pod.Name {
			in.Events = append(in.Events, e)
		}
	}
	return nil
}

// search finds the node that holds an address for the pod, or has failed to give it one.
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
				found[i] = len(interfacesOf(pool.ENIs, in.Pod)) > 0
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
	e := &cli.Error{Code: cli.ExitNotFound, What: "pod " + in.Pod.Namespace + "/" + in.Pod.Name + " not found", Why: "no daemon holds an address for it, or has failed to give it one"}
	switch {
	case ctx.Err() != nil:
		return cli.Exit(cli.ExitInterrupted)
	case failed == len(names):
		e.Code, e.Why = cli.ExitUnreachable, "none of the nodes could be read"
	case failed > 0:
		e.Code, e.Why = cli.ExitPartial, e.Why+"; some nodes could not be read, and one of them may"
	}
	e.Do = f.Name + " nodes" + f.SameNodes()
	return e
}

// daemon reads what the node's daemon knows of the pod.
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
			in.Interfaces = interfacesOf(in.ENIs, in.Pod)
			return nil // the original, or an older daemon: there is no more
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
			in.Blocked = plan.Blocked
		}
		if events, err := c.Events(ctx, client.Cursor{}, client.EventsOptions{}); err == nil {
			in.Daemon = events.Items
		}
		summary, _, err := c.Summary(ctx)
		if err == nil {
			in.Waiting = summary.WaitingADDs
		}
		return nil
	})
	switch {
	case len(errs) == 0:
		in.Errors = append(in.Errors, introspect.NodeError{Node: in.Node, Reason: introspect.ReasonNoPod, Message: "the node is none of those that are read"})
	case errs[0] != nil:
		e := introspect.NodeError{Node: in.Node, Reason: client.ReasonOf(errs[0]), Message: errs[0].Error()}
		var failed *client.Error
		if errors.As(errs[0], &failed) {
			e.Message = failed.Err.Error()
		}
		in.Errors = append(in.Errors, e)
	}
}

// interfacesOf finds the addresses of a pod in a pool; nothing is known of the wiring.
func interfacesOf(enis []introspect.NodeENI, ref introspect.PodRef) []introspect.PodInterface {
	out := []introspect.PodInterface{}
	for _, e := range enis {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				if a.State != introspect.AddressAssigned || a.PodName != ref.Name || a.PodNamespace != ref.Namespace {
					continue
				}
				card, device := e.Card, e.Device
				out = append(out, introspect.PodInterface{
					Address: a.Address, ENIID: e.ID, Card: &card, Device: &device, SubnetID: e.SubnetID, RouteTable: e.RouteTable, AssignedAt: a.AssignedAt,
					Problem: "the daemon does not tell what the kernel has",
				})
			}
		}
	}
	return out
}
