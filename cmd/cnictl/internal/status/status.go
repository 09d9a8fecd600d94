package status

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// Options are the arguments and flags of status.
type Options struct {
	Watch bool
	// Open opens the nodes; nil for the default.
	Open access.Opener
}

// New builds the command for the nodes that open returns; nil for the default.
func New(f *cli.Factory, open access.Opener) *cobra.Command {
	opts := &Options{Open: open}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is wrong in the cluster and how full its pools are, on one page",
		Long: `Show the cluster on one page: totals; problems by cause, worst first; how many nodes could
not be read and why; the subnets, fullest first; and the nodes, worst first, each with a bar
(used, cooling, free, room up to the limit), its warm targets and max-pods. Of a subnet that
is short of addresses it names the namespaces that have the most of them, unless with --watch.

The page fits the terminal. -o wide shows everything and lists every problem and how
long it took to read the nodes.`,
		Example: `  {{.Command}} status
  # for a script: how many nodes are live
  {{.Command}} status -o jsonpath={.nodes.live}`,
		Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), f, opts) },
	}
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "refresh every --interval, redrawing in place")
	return cmd
}

// Run shows the status once, or follows it until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	if opts.Watch {
		return watch(ctx, f, opts)
	}
	open := opts.Open
	if open == nil {
		open = access.Fleet
	}
	r, err := list.Read(ctx, f, open, fleet.Query{})
	if err != nil {
		return err
	}
	defer r.Close()
	v := store.Of(r.Items)
	var took *float64
	if f.Recording != nil {
		v = v.WithReadings(f.Recording.Readings())
	} else {
		v = sweep.WithHistory(ctx, r.Nodes, v)
		took = new(r.Took.Seconds())
	}
	s := Of(v, r.NodeIPAMList, took)
	if !r.Interrupted {
		fillNamespaces(ctx, f, r.Nodes, v, &s)
	}
	if output.Structured(f) {
		err = output.PrintDocument(f, s, false)
	} else {
		err = output.PrintLines(f, View(v, s, frame(f)))
	}
	if err != nil {
		return err
	}
	return r.Verdict(f)
}

func frame(f *cli.Factory) Frame {
	fr := Frame{ASCII: f.ASCII(), Palette: f.Palette(), Command: f.Name, SameNodes: f.SameNodes(), NoHeaders: f.Globals.NoHeaders,
		All: output.Wide(f), Dated: f.Globals.Replay != ""}
	if f.Streams.OutTTY {
		fr.Width, fr.Height = f.Streams.Size()
	}
	return fr
}

// watch draws the status in place as it changes; without a terminal it prints one after
// another.
func watch(ctx context.Context, f *cli.Factory, opts *Options) error {
	inPlace := f.Streams.OutTTY && !output.Structured(f)
	screen := output.NewScreen(f)
	v := &store.View{}
	var s document.FleetStatus
	draw := func(every time.Duration) error {
		fr := frame(f)
		fr.Every = every
		if follow.HasUpstream(v) {
			fr.Upstream = follow.UpstreamInterval
		}
		lines := View(v, s, fr)
		if inPlace {
			return screen.Draw(lines)
		}
		return output.PrintLines(f, append(lines, ""))
	}
	watched := follow.Options{Open: opts.Open, Histories: true, Whole: !inPlace, Show: func(now follow.Moment) error {
		v = now.View
		if s = Of(v, now.List(), nil); output.Structured(f) {
			return output.PrintDocument(f, s, true)
		}
		return draw(now.Every)
	}}
	if inPlace {
		watched.Redraw = draw
	}
	return follow.Fleet(ctx, f, watched)
}
