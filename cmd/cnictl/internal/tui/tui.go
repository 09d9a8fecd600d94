package tui

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/doctor"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/evidence"
	"cnictl/doctor/report"
	"cnictl/tui/app"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/tables"
)

// Options are the arguments and flags of tui.
type Options struct {
	Screen              string // "" = the overview
	ASCII, Plain, Mouse bool
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "tui [SCREEN]",
		Short: "Watch the cluster in a full-screen terminal UI",
		Long: `Watch the cluster in a full-screen terminal UI: every node's pool live, with its ENIs,
addresses and pods, subnets, trunks, and problems. ? shows the keys, q quits. ` + f.Name + `
without a command does the same on a terminal. With --replay FILE they show a recording.

With --plain (or ACCESSIBLE=1) the screens are printed as plain text when you ask for them.`,
		Example: "  " + f.Name + " tui\n  " + f.Name + " tui subnets --theme light\n  " + f.Name + " replay night.cnirec",
		Args:    cli.Args(0, 1, "SCREEN"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return app.Screens(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Screen = ""
			if len(args) > 0 {
				opts.Screen = args[0]
			}
			return Run(cmd.Context(), f, opts)
		},
	}
	Flags(cmd, opts)
	return cmd
}

// Flags adds the flags of the screens to a command that shows them.
func Flags(cmd *cobra.Command, opts *Options) {
	fs := cmd.Flags()
	fs.BoolVar(&opts.ASCII, "ascii", false, "draw with ASCII only, even in a UTF-8 locale")
	fs.BoolVar(&opts.Plain, "plain", false, "print plain text on request instead of drawing a screen")
	fs.BoolVar(&opts.Mouse, "mouse", false, "use the mouse to select, open and scroll (m toggles it)")
}

// forScreens makes the forecasts of subnets begin before the screens, and the texts of rows once per
// sample.
func forScreens(o *live.Options) {
	o.Histories = true
	o.Store.Prepare(tables.NodeCells)
}

// Run watches the live fleet until the user leaves.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if file := f.Globals.Replay; file != "" {
		return Play(ctx, f, opts, file, 1)
	}
	if err := Check(f, opts); err != nil {
		return err
	}
	l, err := access.Live(ctx, f, forScreens)
	switch {
	case cli.Interrupted(ctx, err):
		return nil // leaving before the first screen appears is like leaving a screen
	case err != nil:
		return err
	}
	return Show(ctx, f, opts, l)
}

// Play plays a recording on the screens, from --at, else from where it opens.
func Play(ctx context.Context, f *cli.Factory, opts *Options, file string, speed float64) error {
	if err := Check(f, opts); err != nil {
		return err
	}
	player, err := access.Player(f, file)
	if err != nil {
		return err
	}
	player.Prepare(tables.NodeCells)
	player.Speed(speed)
	if f.Globals.At == "" {
		player.Seek(player.OpensAt())
	}
	return Show(ctx, f, opts, player)
}

// Check rejects what cannot be shown, before anything is read.
func Check(f *cli.Factory, opts *Options) error {
	if opts.Screen != "" && !app.HasScreen(opts.Screen) {
		return &cli.Error{Code: cli.ExitUsage, What: "unknown screen " + opts.Screen, Why: "the screens are " + strings.Join(app.Screens(), ", "),
			Do: f.Name + " tui --help"}
	}
	if !opts.Plain && !f.Streams.Interactive && !accessible(f) {
		return needsTerminal(f)
	}
	if err := keymap.Check(f.Keys()); err != nil {
		return &cli.Error{
			Code: cli.ExitUsage, What: "invalid keys in " + f.ConfigFile(), Why: err.Error(),
			Do: "fix keys: in that file; docs/tui.md lists the actions and their keys",
		}
	}
	return nil
}

func needsTerminal(f *cli.Factory) error {
	if file := f.Globals.Replay; file != "" {
		return &cli.Error{
			Code: cli.ExitUsage, What: app.ErrNoTerminal.Error(), Why: "a recording is shown on the screens unless a command is given",
			Do: f.Name + " status --replay " + file,
		}
	}
	return &cli.Error{Code: cli.ExitUsage, What: app.ErrNoTerminal.Error() + `; use "` + f.Name + ` status -o json" instead`,
		Do: f.Name + " tui --plain prints the screens as text"}
}

// Source is a running fleet: the live one, or a recording that plays.
type Source interface {
	watch.Source
	Run(ctx context.Context) error
}

// Show shows the screens for a source, and runs it meanwhile. It continues with the source of
// another context when the user switches.
func Show(ctx context.Context, f *cli.Factory, opts *Options, src Source) error {
	remembered := &app.Remembered{}
	for {
		next, err := show(ctx, f, opts, src, remembered)
		if !errors.Is(err, app.ErrSwitched) {
			return err
		}
		f, src = next.f, next.src
	}
}

// place is a context with its nodes.
type place struct {
	f   *cli.Factory
	src Source
}

// show shows the screens for one source. On ErrSwitched, next is where to continue.
func show(ctx context.Context, f *cli.Factory, opts *Options, src Source, remembered *app.Remembered) (next place, _ error) {
	var connected place // set before the screens end with ErrSwitched
	file := kubeconfigOf(f)
	asked := app.Options{
		Source: src, Screen: pages.Open{Screen: opts.Screen}, Theme: f.Globals.Theme, Keys: f.Keys(), State: f.StateFile(),
		Namespace: kubeconfig.Namespace(f), Only: f.Globals.Kube.Namespace, Examine: examine(f, src), Interval: f.Globals.Interval,
		ASCII: opts.ASCII, Plain: opts.Plain, Mouse: opts.Mouse, Remembered: remembered,
		In: f.Streams.In, Out: f.Streams.Out, Environ: environ(f), Now: f.Now,
	}
	if file != nil {
		asked.Cluster, asked.Contexts, asked.Context = file.Cluster(), file.Contexts(), file.Title()
		asked.Connect = func(ctx context.Context, name string) error {
			g := kubeconfig.Switched(f, name)
			l, err := access.Live(ctx, g, forScreens)
			connected = place{g, l}
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return src.Run(running) })
	err := app.Run(ctx, asked)
	cancel()
	if of := group.Wait(); err == nil {
		err = of
	}
	switch {
	case errors.Is(err, app.ErrSwitched):
		return connected, err
	case errors.Is(err, app.ErrNoTerminal):
		return next, needsTerminal(f)
	case errors.Is(err, context.Canceled):
		return next, nil // that is how watching ends
	}
	return next, err
}

// examine runs the doctor on a recording, or else on the nodes themselves.
func examine(f *cli.Factory, src Source) app.Examine {
	return func(ctx context.Context, e pages.Examine) (r document.DoctorReport, err error) {
		soFar := func(ev *evidence.Evidence) { e.SoFar(diagnosis(ev)) }
		var ev *evidence.Evidence
		switch _, recorded := src.(watch.Recording); {
		case recorded:
			ev, err = watched.Evidence(ctx, src, e.Scope, e.Nodes, e.Progress, soFar)
		case e.Scope.Pod != "":
			ev, err = doctor.Collect(ctx, f, doctor.Nodes{Pod: e.Scope.Pod, SoFar: soFar}, e.Progress)
		default:
			ev, err = doctor.Collect(ctx, f, doctor.Nodes{Names: e.Nodes, SoFar: soFar}, e.Progress)
		}
		if err != nil {
			return r, err
		}
		return diagnosis(ev), nil
	}
}

func diagnosis(ev *evidence.Evidence) document.DoctorReport {
	r := causes.Diagnose(ev, causes.Options{})
	report.FillIn(&r)
	return r
}

// kubeconfigOf returns the kubeconfig that leads to the nodes, nil if none does.
func kubeconfigOf(f *cli.Factory) *kubeconfig.File {
	if f.Recording != nil || f.Globals.Replay != "" || len(f.Globals.Targets) > 0 || f.Globals.Via == cli.ViaLocal || !kubeconfig.Given(f) {
		return nil
	}
	file, err := kubeconfig.Load(f)
	if err != nil {
		return nil
	}
	return file
}

// terminalVariables describe the terminal's capabilities.
var terminalVariables = []string{
	"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "STY", "SSH_TTY", "WT_SESSION", "COLORFGBG",
	"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "ACCESSIBLE", "LC_ALL", "LC_CTYPE", "LANG", "TTY_FORCE", "GOOGLE_CLOUD_SHELL",
}

// environ returns the environment for the screens: --color=never becomes NO_COLOR.
func environ(f *cli.Factory) []string {
	var out []string
	for _, name := range terminalVariables {
		if value, ok := f.Env(name); ok && !(name == "NO_COLOR" && f.Globals.Color == "always") {
			out = append(out, name+"="+value)
		}
	}
	if f.Globals.Color == "never" {
		out = append(out, "NO_COLOR=1")
	}
	return out
}

func accessible(f *cli.Factory) bool {
	v, _ := f.Env("ACCESSIBLE")
	return v != "" && v != "0"
}
