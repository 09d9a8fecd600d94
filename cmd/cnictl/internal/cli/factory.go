package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/fleet"
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

	lists   []columnLister      // of the list commands
	sources map[string]string   // of the flags, by name
	keys    map[string][]string // of the screens
	pager   *pager              // nil: none
}

// Prepare registers the global flags on the root command and arranges that they are
// read from the environment and checked before any command runs.
func (f *Factory) Prepare(root *cobra.Command) {
	f.Globals.register(root.PersistentFlags(), f.kubeCacheDir())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.settle(cmd); err != nil {
			return err
		}
		if err := f.Globals.check(); err != nil {
			return err
		}
		f.page(cmd)
		return nil
	}
	_ = root.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return OutputForms(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("color", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp
	})
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

// ASCII tells that only ASCII may be drawn.
func (f *Factory) ASCII() bool { return !utf8Locale(f.Env) }

// TableOptions are those of standard output.
func (f *Factory) TableOptions() table.Options {
	return table.Options{NoHeaders: f.Globals.NoHeaders, Width: f.Streams.Width(), Palette: f.Palette()}
}

// Deadline bounds a one-shot command by --timeout.
func (f *Factory) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.Globals.Timeout)
}

// CompleteNodes completes node names from --targets, without asking any node.
func (f *Factory) CompleteNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if f.settle(cmd) != nil {
		return nil, directive
	}
	// Completion parses the flags more than once, and lists then repeat.
	given := slices.Compact(slices.Sorted(slices.Values(f.Globals.Targets)))
	targets, err := fleet.ParseTargets(given)
	if err != nil {
		return nil, directive
	}
	var names []string
	for _, t := range targets {
		if !slices.Contains(args, t.Name) && !strings.ContainsAny(t.Name, "\t\n") {
			names = append(names, t.Name)
		}
	}
	return names, directive
}
