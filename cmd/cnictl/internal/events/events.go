package events

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/watch"
)

// options are the arguments and flags of events.
type options struct {
	Names    []string // of nodes; none: all
	Daemon   bool     // also the daemons' own events
	Warnings bool     // only warnings
	Since    time.Duration
	Each     bool // a row for each event, also on a terminal
	list     *output.List[row]
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &options{}
	opts.list = newList(func() bool { return opts.grouped(f) })
	cmd := opts.list.Command(f, &cobra.Command{
		Use:     "events [NODE…]",
		Aliases: []string{"event"},
		Short:   "List events about pod addresses: from Kubernetes, and from the daemons",
		Long: `List events about pod addresses, oldest first: Kubernetes events (failed sandboxes,
aws-node, trunks) and, with --daemon, the last 500 pool changes that each daemon remembers.
Kubernetes events take one request to the API server; the daemons take a connection to each
node and the rights for it, so they are read only with --daemon. Without an API server
(--targets), only daemon events are shown; with --replay, all that were recorded.

On a terminal, events of one cause on one object are one row, with how often and when it last
happened; --each shows them one by one, as all other forms of output do.`,
		Example: "  " + f.Name + " events --warnings\n  " + f.Name + " events -n shop --daemon\n  " + f.Name +
			" events ip-10-0-3-17 --daemon -w\n  " + f.Name + " events --daemon --filter 'what=add-failed'",
	}, func(ctx context.Context, names []string) error {
		if opts.Since < 0 {
			return cli.Usage("--since=%s: must not be negative", opts.Since)
		}
		if err := output.Refuse(f, output.Name); err != nil { // events have no names
			return err
		}
		opts.Names = names
		return opts.command().Run(ctx, f, names)
	})
	fs := cmd.Flags()
	fs.BoolVar(&opts.Daemon, "daemon", false, "include the daemons' own events")
	fs.BoolVar(&opts.Each, "each", false, "show each event in a row of its own, also on a terminal")
	fs.BoolVar(&opts.Warnings, "warnings", false, "show only warnings")
	fs.DurationVar(&opts.Since, "since", 0, "show only events newer than this, e.g. 10m")
	return cmd
}

// command is the list of events.
func (o *options) command() list.Command[row] {
	var of *reader
	return list.Command[row]{
		List: o.list, Document: documentOf, Follow: o.follow,
		Read: func(ctx context.Context, f *cli.Factory, _ []string) (_ *list.Reading, err error) {
			if of, err = o.open(ctx, f); err != nil {
				return nil, err
			}
			return &list.Reading{Nodes: of.nodes}, nil
		},
		Rows: func(ctx context.Context, f *cli.Factory, r *list.Reading) ([]row, error) {
			return o.rows(ctx, f, of, r)
		},
	}
}

// open finds what to read the events of.
func (o *options) open(ctx context.Context, f *cli.Factory) (*reader, error) {
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return nil, err
	}
	r := newReader(f, o, api)
	if !o.Daemon && api != nil {
		r.of, err = selected(ctx, f, o, api)
		return r, err
	}
	if r.nodes, err = access.FleetOf(ctx, f, o.Names); err != nil {
		return nil, err
	}
	r.names = r.nodes.Names()
	r.of.all = !o.narrowed(f)
	r.of.add(r.nodes)
	return r, nil
}

// rows reads the events once.
func (o *options) rows(ctx context.Context, f *cli.Factory, of *reader, r *list.Reading) ([]row, error) {
	deadline, cancel := f.DeadlineFor(ctx, len(of.names))
	defer cancel()
	rows, errs, err := of.read(deadline)
	if err != nil {
		return nil, err
	}
	r.Partial, r.Errors, r.SampledAt = len(errs) > 0, errs, f.Now().UTC()
	r.Judge = func() error {
		if ctx.Err() != nil {
			return sweep.Interrupted(errs, len(of.names))
		}
		return sweep.Partly(f, errs, len(of.names))
	}
	if len(o.list.Choose(rows)) == 0 && ctx.Err() == nil && !output.Structured(f) {
		f.Note(o.none(of, len(errs), f.Globals.Kube.Namespace))
	}
	if o.grouped(f) {
		rows = inventory.GroupEvents(rows)
	}
	return rows, nil
}

func documentOf(r *list.Reading, chosen []row) any {
	doc := document.EventList{
		APIVersion: introspect.APIVersion, Kind: document.KindEventList, Items: make([]document.EventItem, len(chosen)),
		Partial: r.Partial, Errors: r.Errors, SampledAt: r.SampledAt,
	}
	for i, e := range chosen {
		doc.Items[i] = e.EventItem
	}
	return doc
}

// grouped reports whether events of one cause on one object are one row.
func (o *options) grouped(f *cli.Factory) bool {
	return !o.Each && !o.list.Watching() && !output.Structured(f) && f.Globals.Output != output.CSV && output.TableOptions(f).Width > 0
}

// none says that no events were found, and on which nodes.
func (o *options) none(r *reader, unread int, namespace string) string {
	text := "no events found in the cluster"
	if r.api == nil || !r.of.all {
		text = "no events found on " + human.Plural(r.of.size()-unread, "node", "nodes")
	}
	if namespace != "" {
		text += " in namespace " + namespace
	}
	if o.Since > 0 {
		text += " in the last " + human.Age(o.Since)
	}
	switch {
	case o.Warnings && o.list.Filter != "":
		text += " with --warnings and --filter"
	case o.Warnings:
		text += " with --warnings"
	case o.list.Filter != "":
		text += " with --filter"
	}
	if r.api != nil && r.nodes == nil {
		text += "; the daemons' own were not read: give --daemon"
	}
	return text
}

// reader reads events. When following, it reads only the daemons' new events.
type reader struct {
	f     *cli.Factory
	opts  *options
	api   *kube.Cluster            // nil if none
	nodes *fleet.Fleet             // nil if the daemons are not read
	names []string                 // of nodes
	of    *selection               // selects the Kubernetes events to print
	after map[string]client.Cursor // by node
}

func newReader(f *cli.Factory, opts *options, api *kube.Cluster) *reader {
	return &reader{f: f, opts: opts, api: api, after: map[string]client.Cursor{}, of: &selection{nodes: map[string]bool{}}}
}

// read reads the events, oldest first. It fails if Kubernetes cannot be read, but only lists
// nodes that cannot be read.
func (r *reader) read(ctx context.Context) ([]row, []document.NodeError, error) {
	rows, errs := []row{}, []document.NodeError{}
	now := r.f.Now()
	if r.api != nil {
		q := kube.EventQuery{Namespace: r.f.Globals.Kube.Namespace}
		if r.opts.Since > 0 {
			q.Since = now.Add(-r.opts.Since)
		}
		listed, err := r.api.Events(ctx, q)
		if err != nil {
			return nil, nil, access.ClusterError(r.f, "list events", err)
		}
		for _, e := range listed {
			if r.of.wants(e.Node) {
				rows = append(rows, inventory.KubernetesEvent(e, now))
			}
		}
	}
	var found []row
	var failed []document.NodeError
	switch {
	case r.f.Recording != nil:
		found, failed = r.recorded(ctx)
	case r.nodes != nil:
		found, failed = r.daemons(ctx)
	}
	rows, errs = append(rows, found...), append(errs, failed...)
	rows = slices.DeleteFunc(rows, func(e row) bool {
		return r.opts.Warnings && !e.Warning || r.opts.Since > 0 && e.At.Before(now.Add(-r.opts.Since))
	})
	inventory.MergeEvents(rows)
	return rows, errs, nil
}

// daemons returns the events that the daemons have had since they were last read.
func (r *reader) daemons(ctx context.Context) (rows []row, errs []document.NodeError) {
	now := r.f.Now()
	docs := make([]introspect.NodeEvents, len(r.names))
	done, erase := sweep.Asking(r.f, len(r.names))
	failures := r.nodes.Ask(ctx, nil, func(ctx context.Context, i int, t fleet.Target, c *client.Client) (err error) {
		docs[i], err = c.Events(ctx, r.after[r.names[i]], client.EventsOptions{})
		if t.Dial != nil {
			c.Close() // keeps no more tunnels open than nodes are being read
		}
		done(err)
		return err
	})
	erase()
	for i, name := range r.names {
		switch reason := client.ReasonOf(failures[i]); {
		case failures[i] == nil:
			if _, again := r.after[name]; r.opts.list.WatchOnly && !again {
				docs[i].Items = nil // drop the earlier events
			}
			r.after[name] = client.Cursor{Epoch: docs[i].Epoch, Seq: docs[i].Next}
		case reason == introspect.ReasonNoEndpoint || reason == introspect.ReasonNotServed:
			// Upstream has no events of its own, only those in Kubernetes.
		default:
			errs = append(errs, sweep.ErrorOf(name, failures[i]))
		}
		for _, e := range docs[i].Items {
			rows = append(rows, inventory.DaemonEvent(name, docs[i].Epoch, e, now))
		}
	}
	return rows, errs
}

// recorded returns the events of a recording, both the daemons' and Kubernetes'.
func (r *reader) recorded(ctx context.Context) (rows []row, errs []document.NodeError) {
	now := r.f.Now()
	for _, name := range r.names {
		d := r.f.Recording.Detail(ctx, name, watch.WantEvents|watch.WantKubeEvents, watch.Query{})
		if d.Events == nil && d.KubeEvents == nil {
			errs = append(errs, d.Errors[watch.WantEvents])
			continue
		}
		if d.Events != nil {
			for _, e := range d.Events.Items {
				rows = append(rows, inventory.DaemonEvent(name, d.Events.Epoch, e, now))
			}
		}
		for _, e := range d.KubeEvents {
			rows = append(rows, inventory.KubernetesEvent(e, now))
		}
	}
	return rows, errs
}
