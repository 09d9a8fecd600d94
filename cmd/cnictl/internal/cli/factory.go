package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/show"
)

// Factory gives the commands what they work with. What costs is a function, so that
// help works anywhere.
type Factory struct {
	Streams *Streams
	Env     Lookup
	Now     func() time.Time
	// Tick gives a channel that fires every d, and stops it.
	Tick    func(d time.Duration) (ticks <-chan time.Time, stop func())
	Name    string // how the tool was called: cnictl, or kubectl cni
	Version string
	// LocalTarget is this host's introspection server; ok tells whether the host
	// looks like a node.
	LocalTarget func(context.Context) (target fleet.Target, ok bool)

	Globals Globals

	lists []columnLister // of the list commands, as they are built

	// What follows is set once, before the command runs.
	sources   map[string]string   // of the flags, by name
	keys      map[string][]string // of the screens
	recording *record.Player      // read in place of nodes; nil: the nodes are
	pager     *pager              // nil: none
}

// Prepare registers the global flags on the root command and arranges that they are
// read from the environment and checked before any command runs.
func (f *Factory) Prepare(root *cobra.Command) {
	f.Globals.register(root.PersistentFlags(), f.kubeCacheDir())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.settle(cmd); err != nil {
			return err
		}
		if err := f.Globals.check(f.Name); err != nil {
			return err
		}
		if f.Globals.At != "" && f.Globals.Replay == "" && cmd.Name() != "replay" {
			return &Error{Code: ExitUsage, What: "--at is a time within a recording, and none is read", Do: cmd.CommandPath() + " --replay FILE --at " + f.Globals.At}
		}
		if f.Globals.Replay != "" {
			if err := f.ReadRecording(f.Globals.Replay); err != nil {
				return err
			}
		}
		f.page(cmd)
		return nil
	}
	f.completeFlags(root)
}

// RunAs runs a command without arguments in the place of another.
func (f *Factory) RunAs(ctx context.Context, cmd *cobra.Command) error {
	cmd.SetContext(ctx)
	if err := cmd.ParseFlags(nil); err != nil { // joins the global flags to its own
		return err
	}
	if err := f.settle(cmd); err != nil {
		return err
	}
	return cmd.RunE(cmd, nil)
}

// Palette are the colours of standard output.
func (f *Factory) Palette() paint.Palette {
	if colourOn(f.Globals.Color, f.Streams.OutTTY, f.Env) {
		return paint.Colours()
	}
	return paint.Palette{}
}

// ASCII tells that only ASCII may be drawn, as the screens decide it too.
func (f *Factory) ASCII() bool {
	return !show.UTF8(func(name string) string { v, _ := f.Env(name); return v })
}

// TableOptions are those of standard output.
func (f *Factory) TableOptions() table.Options {
	return table.Options{NoHeaders: f.Globals.NoHeaders, Width: f.Streams.Width(), Palette: f.Palette()}
}

// Deadline bounds a one-shot command by --timeout.
func (f *Factory) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return f.DeadlineFor(ctx, 0)
}

// DeadlineFor is Deadline for a command that asks so many nodes.
func (f *Factory) DeadlineFor(ctx context.Context, nodes int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.Globals.timeoutFor(nodes))
}
