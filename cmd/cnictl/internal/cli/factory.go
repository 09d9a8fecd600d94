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
	"cnictl/tui/show"
)

// Factory holds the dependencies of the commands. Expensive ones are functions, so that help
// works anywhere.
type Factory struct {
	Streams *Streams
	Env     Lookup
	Now     func() time.Time
	// Clock times the work itself, for progress; Now may return the time of a recording. If
	// nil, time.Now is used.
	Clock func() time.Time
	// Tick returns a channel that fires every d, and a function that stops it.
	Tick    func(d time.Duration) (ticks <-chan time.Time, stop func())
	Name    string // how the tool was called: cnictl, or kubectl cni
	Version string
	// LocalTarget returns this host's introspection server; ok reports whether the host looks
	// like a node.
	LocalTarget func(context.Context) (target fleet.Target, ok bool)

	Globals Globals

	// These are set once, before the command runs.
	Recording     *record.Player      // read instead of live nodes; nil if live
	RecordingFile string              // where Recording was read from
	sources       map[string]string   // of the flags, by name
	flags         *pflag.FlagSet      // of the running command
	command       string              // path of the running command
	keys          map[string][]string // key bindings of the screens
	pager         *pager              // nil if none
}

// Step is work to do before any command runs.
type Step func(cmd *cobra.Command) error

// Prepare registers the global flags on the root command. Before any command runs, they are
// filled from the environment and the file, and then the steps are done.
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

// RunAs runs cmd, without arguments, in place of another command.
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

// Palette returns the colours of standard output.
func (f *Factory) Palette() paint.Palette {
	if colourOn(f.Globals.Color, f.Streams.OutTTY, f.Env) {
		return paint.Colours()
	}
	return nil
}

// ASCII reports whether output must be plain ASCII; the screens decide it the same way.
func (f *Factory) ASCII() bool {
	return !show.UTF8(func(name string) string { v, _ := f.Env(name); return v })
}

// Note prints a remark that is not a warning to standard error, such as that nothing was
// found.
func (f *Factory) Note(text string) {
	// If standard error cannot be written, nothing is left to do.
	_, _ = fmt.Fprintln(f.Streams.Err, show.Printable(text))
}

// Warn prints a warning to standard error.
func (f *Factory) Warn(format string, args ...any) {
	// If standard error cannot be written, nothing is left to do.
	_, _ = fmt.Fprintln(f.Streams.Err, "warning: "+show.Printable(fmt.Sprintf(format, args...)))
}

// UserAgent identifies the tool in requests.
func (f *Factory) UserAgent() string { return "cnictl/" + f.Version }

// Deadline bounds a one-shot command by --timeout.
func (f *Factory) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return f.DeadlineFor(ctx, 0)
}

// DeadlineFor is Deadline for a command that reads the given number of nodes.
func (f *Factory) DeadlineFor(ctx context.Context, nodes int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.Globals.timeoutFor(nodes))
}
