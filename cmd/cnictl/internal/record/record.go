package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/evidence/bundle"
	"cnictl/tui/show"
)

// Options are the arguments and flags of record.
type Options struct {
	File     string
	Duration time.Duration // 0: until the user ends it
	Force    bool          // replace an existing file

	Anonymize bool
	Continue  string // an earlier recording, for the history of subnets
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command { return command(f, &Options{}) }

func command(f *cli.Factory, opts *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record FILE",
		Short: "Record the cluster to a file, for replay",
		Long: `Record samples of all nodes to a file, until --for has passed or you press Ctrl-C. The
file is compressed; if it is truncated, it can be replayed up to that point.

It contains what the screens show: samples of all nodes and, for the 32 nodes with the worst
problems, also the plan, failed ADDs, events, log (info and above), pods and kernel state.
Credentials are removed, and only you can read the file (0600). --anonymize also replaces
names, addresses and IDs, consistently across the recording. With --force an existing
recording is replaced as soon as the new one has its first sample.

With --continue the file also has the counts of the subnets' free addresses from an earlier
recording, so that it can forecast when they run out.`,
		Example: "  " + f.Name + " record night.cnirec --for 8h --interval 10s\n  " + f.Name + " replay night.cnirec\n  " +
			f.Name + " record incident.cnirec --continue week.cnirec --for 15m",
		Args: cli.Args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.File = args[0]
			if opts.Duration < 0 {
				return cli.Usage("--for=%s: must not be negative", opts.Duration)
			}
			return Run(cmd.Context(), f, opts)
		},
	}
	cmd.Flags().DurationVar(&opts.Duration, "for", 0, "how long to record, e.g. 8h; 0: until Ctrl-C")
	cmd.Flags().BoolVar(&opts.Anonymize, "anonymize", false, "replace names, addresses and IDs, consistently across the recording")
	cmd.Flags().StringVar(&opts.Continue, "continue", "", "take over the counts of subnets' free addresses from this earlier recording, a `file`")
	cmd.Flags().BoolVar(&opts.Force, "force", false, "replace an existing file")
	// The flag is there. CNICTL_FOR is how long capacity simulates, and must not end a recording.
	_ = cmd.Flags().SetAnnotation("for", cli.EnvAs, []string{cli.EnvName("duration")})
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "duration" { // its name in earlier versions
			name = "for"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

// Run records until the duration is over or ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	var earlier map[string]store.Readings
	if opts.Continue != "" {
		p, err := access.Player(f, opts.Continue)
		if err != nil {
			return err
		}
		p.Play(false)
		_, end := p.Range()
		p.Seek(end)
		earlier = p.Readings()
	}
	l, err := access.Live(ctx, f, func(o *live.Options) {
		o.Background = f.Globals.Interval
		o.Store.KeepENIs()
	})
	if err != nil {
		return err
	}
	l.Focus(watch.Focus{Maps: true}) // a replay may show maps of subnets
	file, err := create(opts)
	if err != nil {
		return err
	}
	title := l.Title()
	if opts.Anonymize {
		title = "anonymized"
	}
	w, err := record.NewWriter(file, record.Header{Tool: f.Version, Title: title, StartedAt: f.Now()})
	if err == nil {
		if opts.Anonymize {
			w.Anonymize(bundle.NewAnonymizer())
		}
		err = w.Continue(earlier, f.Now())
		if err == nil {
			err = sample(ctx, f, opts, l, w, file.begin)
		}
		err = errors.Join(err, w.Close())
	}
	err = errors.Join(err, file.Close())
	if !file.begun {
		return file.nothing(err)
	}
	if err != nil {
		return &cli.Error{Code: cli.ExitFailure, What: "the recording is incomplete", Why: err.Error(),
			Do: "what is in " + opts.File + " can be replayed"}
	}
	info := w.Info()
	info.File, info.Title = opts.File, title
	if output.Structured(f) {
		return output.PrintDocument(f, info, false)
	}
	return output.PrintText(f, fmt.Sprintf("%s: %s of %s over %s", opts.File, human.Plural(info.Samples, "sample", "samples"),
		human.Plural(info.Nodes, "node", "nodes"), over(info)))
}

func over(info document.Recording) string {
	if info.From == nil || info.To == nil {
		return "0s"
	}
	return human.Age(info.To.Sub(*info.From))
}

// Fleet is the fleet to record.
type Fleet interface {
	Run(ctx context.Context) error
	View() *store.View
	Changed() <-chan struct{}
	Stats() watch.Stats
	Detail(ctx context.Context, node string, want watch.Want, q watch.Query) watch.Detail
}

// sample writes changes while the fleet runs. It calls begin once a node was sampled or, as
// it may be that none can be, after an interval.
func sample(ctx context.Context, f *cli.Factory, opts *Options, l Fleet, w *record.Writer, begin func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if opts.Duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, opts.Duration)
		defer cancel()
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return l.Run(running) })
	ticks, stop := f.Tick(max(f.Globals.Interval, cli.MinInterval))
	defer stop()
	progress := cli.NewProgress(f.Streams, f.Now)
	progress.Every, progress.EveryLog = time.Second, time.Minute
	documents := newRounds(l, f.Globals.Interval)
	write := func() error {
		view := l.View()
		err := w.WriteView(view, f.Now())
		if err == nil && anyRead(view) {
			err = begin()
		}
		return err
	}
	var err error
	for err == nil && running.Err() == nil {
		documents.begin(running, group, l.View(), f.Now())
		select {
		case <-running.Done():
		case d := <-documents.out:
			err = errors.Join(write(), w.WriteDocuments(d, f.Now())) // the node must be in the file
		case <-l.Changed():
			err = write()
		case <-ticks:
			err = errors.Join(write(), w.Flush(), begin())
		}
		progress.Say(func() string { return recording(progress.Took(), w.Info(), l.Stats()) })
	}
	progress.Erase()
	cancel()
	err = errors.Join(err, group.Wait())
	if err == nil {
		err = write()
	}
	return err
}

// recording is the line about a recording that is being made.
func recording(took time.Duration, info document.Recording, s watch.Stats) string {
	line := fmt.Sprintf("recording %s  nodes %d  samples %d  failed %d", human.Age(took), info.Nodes, info.Samples, s.Failed)
	if s.Problem != "" {
		line += "  " + show.Safe(s.Problem)
	}
	return line
}
