package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/show"
)

// Factory gives the commands their dependencies. Expensive ones are functions, so that
// help works anywhere.
type Factory struct {
	Streams *Streams
	Env     Lookup
	Now     func() time.Time
	// Clock times the work itself, for progress; Now may be the time of a recording. nil:
	// time.Now.
	Clock func() time.Time
	// Tick gives a channel that fires every d, and stops it.
	Tick    func(d time.Duration) (ticks <-chan time.Time, stop func())
	Name    string // how the tool was called: cnictl, or kubectl cni
	Version string
	// LocalTarget is this host's introspection server; ok reports whether the host
	// looks like a node.
	LocalTarget func(context.Context) (target fleet.Target, ok bool)

	Globals Globals

	// The following are set once, before the command runs.
	Recording     *record.Player      // read instead of live nodes; nil: live
	RecordingFile string              // Recording was read from it
	sources       map[string]string   // of the flags, by name
	flags         *pflag.FlagSet      // of the command
	command       string              // its path
	keys          map[string][]string // of the screens
	pager         *pager              // nil: none
}

// Step is done before any command runs.
type Step func(cmd *cobra.Command) error

// Prepare registers the global flags on the root command and arranges that they are
// read from the environment and the file before any command runs, and then the steps done.
func (f *Factory) Prepare(root *cobra.Command, steps ...Step) {
	f.Globals.register(root.PersistentFlags(), f.kubeCacheDir())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.Settle(cmd); err != nil {
			return err
		}
		for _, do := range steps {
			if err := do(cmd); err != nil {
				return err
			}
		}
		return nil
	}
}

// RunAs runs a command without arguments in place of another.
func (f *Factory) RunAs(ctx context.Context, cmd *cobra.Command) error {
	cmd.SetContext(ctx)
	if err := cmd.ParseFlags(nil); err != nil { // joins the global flags to its own
		return err
	}
	if err := f.Settle(cmd); err != nil {
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

// ASCII reports that only ASCII may be drawn, as the screens decide it too.
func (f *Factory) ASCII() bool {
	return !show.UTF8(func(name string) string { v, _ := f.Env(name); return v })
}

// Note prints to standard error what is not a warning, such as that nothing was found.
func (f *Factory) Note(text string) {
	// Nothing is left to do when standard error cannot be written.
	_, _ = fmt.Fprintln(f.Streams.Err, text)
}

// Warn writes a line to standard error.
func (f *Factory) Warn(format string, args ...any) {
	// Nothing is left to do when standard error cannot be written.
	_, _ = fmt.Fprintf(f.Streams.Err, "warning: "+format+"\n", args...)
}

// UserAgent names the tool in requests.
func (f *Factory) UserAgent() string { return "cnictl/" + f.Version }

// Deadline bounds a one-shot command by --timeout.
func (f *Factory) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return f.DeadlineFor(ctx, 0)
}

// DeadlineFor is Deadline for a command that asks so many nodes.
func (f *Factory) DeadlineFor(ctx context.Context, nodes int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.Globals.timeoutFor(nodes))
}
