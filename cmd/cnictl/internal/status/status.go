package status

import (
	"context"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// Options are what status was asked for.
type Options struct {
	Watch bool
	// Open is the way to the nodes.
	Open func(context.Context) (*fleet.Fleet, error)
}

// New builds the command; run takes the place of Run in tests of the flags.
func New(f *cli.Factory, run func(context.Context, *cli.Factory, *Options) error) *cobra.Command {
	return NewFor(f, f.Fleet, run)
}

// NewFor builds the command for the nodes that open leads to.
func NewFor(f *cli.Factory, open func(context.Context) (*fleet.Fleet, error), run func(context.Context, *cli.Factory, *Options) error) *cobra.Command {
	if run == nil {
		run = Run
	}
	opts := &Options{Open: open}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the pools of all nodes and what is wrong, on one screen",
		Long: `Show the pools of all nodes and what is wrong, on one screen: totals, a bar per
node (assigned, cooling, free, room to the limit), warm targets, max-pods, subnets,
and the problems that nodes report, worst first.`,
		Example: `  {{.Command}} status
  # for a script: how many nodes are live
  {{.Command}} status -o jsonpath={.nodes.live}`,
		Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f, opts) },
	}
	cmd.Flags().BoolVarP(&opts.Watch, "watch", "w", false, "read again every --interval and redraw in place")
	return cmd
}

// Run shows the status once, or until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	nodes, err := opts.Open(ctx)
	if err != nil {
		return err
	}
	defer nodes.Close()
	if opts.Watch {
		return watch(ctx, f, nodes)
	}
	list, interrupted := f.Sweep(ctx, nodes, fleet.Query{})
	s := fleet.StatusOf(list)
	if f.Structured() {
		err = f.PrintDocument(s, false)
	} else {
		err = f.PrintLines(View(list, s, frame(f, list, false)))
	}
	if err != nil {
		return err
	}
	return f.Verdict(list, interrupted)
}

func frame(f *cli.Factory, list introspect.NodeIPAMList, watching bool) Frame {
	fr := Frame{ASCII: f.ASCII(), Palette: f.Palette(), Command: f.Name, NoHeaders: f.Globals.NoHeaders, All: f.Wide()}
	if f.Streams.OutTTY {
		fr.Width, fr.Height = f.Streams.Size()
	}
	if watching {
		fr.Every = f.Globals.Interval
		fr.Gentle = cli.HasOriginal(list)
	}
	return fr
}

func watch(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet) error {
	var list introspect.NodeIPAMList
	var s introspect.FleetStatus
	screen := f.Screen()
	draw := func() error {
		switch {
		case f.Structured():
			return f.PrintDocument(s, true)
		case f.Streams.OutTTY:
			return screen.Draw(View(list, s, frame(f, list, true)))
		}
		return f.PrintLines(append(View(list, s, frame(f, list, true)), ""))
	}
	show := func(ctx context.Context) (bool, error) {
		fresh := nodes.Sweep(ctx, fleet.Query{})
		if ctx.Err() != nil {
			return false, nil // half a sweep would show nodes as lost
		}
		list, s = fresh, fleet.StatusOf(fresh)
		return cli.HasOriginal(list), draw()
	}
	var redraw func() error
	if f.Streams.OutTTY && !f.Structured() {
		redraw = draw
	}
	return f.Watch(ctx, show, redraw)
}
