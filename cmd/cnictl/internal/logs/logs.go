package logs

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/kube"
	"cnictl/tui/show"
)

// Options are the arguments and flags of logs.
type Options struct {
	Names  []string // of nodes; none: all
	Pod    string
	ENI    string
	Level  string
	Grep   string
	Since  time.Duration // 0: everything that is kept
	Tail   int           // lines per node
	Limit  int           // lines in total
	Follow bool

	AccessLines bool // include lines about introspection requests
}

// New builds the command.
func New(f *cli.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "logs [NODE…]",
		Short: "Show the newest lines of ipamd's log, several nodes merged by time",
		Long: `Show the newest lines of the daemons' logs, from all nodes or from the nodes given, merged
by time. Times are UTC, with the date if not all lines are from today. Sandbox IDs and
credentials are removed on the node. Lines about introspection requests, which every read
causes, are omitted unless --access-lines is given.

The upstream daemon does not serve its log. For its nodes the container's log is shown, if
there is an API server; but upstream writes most of its log to a file on the node
(/var/log/aws-routed-eni/ipamd.log), which is not included. The CNI plugin's log
(/var/log/aws-routed-eni/plugin.log) is only on the node; ` + f.Name + ` events --daemon shows
why an ADD or a DEL failed.

With many nodes only the newest --limit lines are shown. To see further back, give node names
or narrow the lines.`,
		Example: "  " + f.Name + " logs ip-10-0-3-17 --level warn -f\n  " + f.Name + " logs --pod shop/cart-7d9f-1 --since 10m\n  " +
			f.Name + " logs --eni eni-0a1b2c3d4e5f60718 --grep throttled",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			if err := opts.check(); err != nil {
				return err
			}
			return Run(cmd.Context(), f, opts)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&opts.Pod, "pod", "", "only lines that mention this pod, `NAME or NAMESPACE/NAME`")
	fs.StringVar(&opts.ENI, "eni", "", "only lines that mention this `ENI`")
	fs.StringVar(&opts.Level, "level", "", "minimum `level`: debug, info, warn, error or fatal")
	fs.StringVar(&opts.Grep, "grep", "", "only lines that contain this `text`")
	fs.DurationVar(&opts.Since, "since", 0, "only lines newer than this, e.g. 10m")
	fs.IntVar(&opts.Tail, "tail", introspect.DefaultLogLines, "newest `lines` of each node, 1 to 1000")
	fs.IntVar(&opts.Limit, "limit", defaultLimit, "newest `lines` of all nodes together")
	fs.BoolVar(&opts.AccessLines, "access-lines", false, "include the lines about introspection requests")
	fs.BoolVarP(&opts.Follow, "follow", "f", false, "follow the logs, reading every --interval")
	_ = cmd.RegisterFlagCompletionFunc("pod", completion.Pod(f))
	_ = cmd.RegisterFlagCompletionFunc("eni", completion.ENI(f))
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *Options) check() error {
	switch {
	case o.Level != "" && !slices.Contains(levels, o.Level):
		return cli.Usage("--level=%s: must be one of %s", o.Level, strings.Join(levels, ", "))
	case o.Tail < 1 || o.Tail > introspect.MaxLogLines:
		return cli.Usage("--tail=%d: must be 1 to %d", o.Tail, introspect.MaxLogLines)
	case o.Limit < 1:
		return cli.Usage("--limit=%d: must be greater than 0", o.Limit)
	case o.Since < 0:
		return cli.Usage("--since=%s: must not be negative", o.Since)
	case strings.HasPrefix(o.Pod, "/"), strings.HasSuffix(o.Pod, "/"), strings.Count(o.Pod, "/") > 1:
		return cli.Usage("--pod=%s: must be NAME or NAMESPACE/NAME", o.Pod)
	case len(o.match()) > introspect.MaxLogMatch:
		return cli.Usage("the text to search for is longer than %d bytes", introspect.MaxLogMatch)
	}
	return nil
}

// filter returns the filter for the lines.
func (o *Options) filter() filter {
	w := filter{level: o.Level, pod: podFilterOf(o.Pod), access: o.AccessLines}
	for _, word := range []string{o.ENI, o.Grep} {
		if word != "" {
			w.words = append(w.words, word)
		}
	}
	return w
}

// match returns the one text that the node itself searches for. The longest is probably the
// rarest. Pods are matched by name only: a line may omit the namespace, or have it in another
// member.
func (o *Options) match() string {
	longest := ""
	for _, word := range []string{podFilterOf(o.Pod).name, o.ENI, o.Grep} {
		if len(word) > len(longest) {
			longest = word
		}
	}
	return longest
}

// notNodes rejects a pod's name in place of a node's.
func (o *Options) notNodes(f *cli.Factory) error {
	for _, name := range o.Names {
		if pod, found := strings.CutPrefix(name, "pod/"); found {
			return &cli.Error{Code: cli.ExitNotFound, What: name + " is not a node",
				Why: "logs are read by node; --pod selects the lines about a pod", Do: f.Name + " logs --pod " + pod + f.SameNodes()}
		}
	}
	return nil
}

// Run prints the lines once, or follows them until ctx ends.
func Run(ctx context.Context, f *cli.Factory, opts *Options) error {
	if err := opts.notNodes(f); err != nil {
		return err
	}
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	r := &reader{f: f, opts: opts, last: map[string]place{}}
	r.cluster = sync.OnceValues(func() (*kube.Cluster, error) { return access.Kubernetes(ctx, f) })
	if opts.Follow {
		return follow.Nodes(ctx, f, opts.Names, func(ctx context.Context, nodes *fleet.Fleet) (bool, error) {
			r.among(nodes)
			items, _, upstream := r.read(ctx)
			if ctx.Err() != nil {
				return false, nil
			}
			return upstream, r.print(r.newest(items))
		})
	}
	nodes, err := access.FleetOf(ctx, f, opts.Names)
	if err != nil {
		return err
	}
	defer nodes.Close()
	r.nodes, r.names = nodes, nodes.Names()
	deadline, cancel := f.DeadlineFor(ctx, len(r.names))
	defer cancel()
	items, errs, _ := r.read(deadline)
	items = r.newest(items)
	if output.Structured(f) {
		err = output.PrintDocument(f, document.LogList{
			APIVersion: introspect.APIVersion, Kind: document.KindLogList, Items: items, Partial: len(errs) > 0, Errors: errs,
			SampledAt: f.Now().UTC(),
		}, false)
	} else {
		if len(items) == 0 && len(errs) < len(r.names) && ctx.Err() == nil {
			f.Note(opts.none(len(r.names) - len(errs)))
		}
		err = r.print(items)
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return sweep.Interrupted(errs, len(r.names))
	}
	return sweep.Partly(f, errs, len(r.names))
}

// none says that no line of these nodes matched.
func (o *Options) none(nodes int) string {
	text := "no lines match in the logs of " + human.Plural(nodes, "node", "nodes")
	asked := []string{}
	for _, flag := range []struct{ name, value string }{{"level", o.Level}, {"pod", o.Pod}, {"eni", o.ENI}, {"grep", o.Grep}} {
		if flag.value != "" {
			asked = append(asked, "--"+flag.name+" "+show.Safe(flag.value))
		}
	}
	if o.Since > 0 {
		asked = append(asked, "--since "+human.Age(o.Since))
	}
	if len(asked) > 0 {
		text += " with " + strings.Join(asked, " ")
	}
	if !o.AccessLines {
		text += " (access lines are left out; --access-lines shows them)"
	}
	return text
}

// print writes the lines: time, node, level, message.
func (r *reader) print(items []document.LogItem) error {
	if output.Structured(r.f) {
		for _, i := range items {
			if err := output.PrintDocument(r.f, i, true); err != nil {
				return err
			}
		}
		return nil
	}
	palette := r.f.Palette()
	domain := ""
	if r.f.Streams.Width() > 0 { // on a terminal, without what all names end with
		domain = show.Domain(slices.Values(r.names))
	}
	for _, name := range r.names {
		r.width = max(r.width, len(strings.TrimSuffix(name, domain)))
	}
	clock := r.clock(items)
	lines := make([]string, len(items))
	for n, i := range items {
		at := strings.Repeat(" ", len(clock))
		if i.At != nil {
			at = i.At.Format(clock)
		}
		lines[n] = palette.Paint(paint.Dim, at) + "  "
		if len(r.names) > 1 {
			lines[n] += palette.Paint(paint.Node(i.Node), pad(show.Safe(strings.TrimSuffix(i.Node, domain)), r.width)) + "  "
		}
		lines[n] += palette.Paint(levelClass(i.Level), pad(show.OrUnknown(i.Level), len("error"))) + "  " + safeLong(i.Message)
	}
	return output.PrintLines(r.f, lines)
}

// Forms of a line's time, in UTC.
const (
	clockOfDay  = "15:04:05.000"
	clockOfDate = time.DateOnly + " " + clockOfDay
)

// clock returns the time format. It includes the date from the first line on that is not of
// the day on which printing began.
func (r *reader) clock(items []document.LogItem) string {
	if r.day == "" {
		r.day = r.f.Now().UTC().Format(time.DateOnly)
	}
	r.dated = r.dated || slices.ContainsFunc(items, func(i document.LogItem) bool {
		return i.At != nil && i.At.Format(time.DateOnly) != r.day
	})
	if r.dated {
		return clockOfDate
	}
	return clockOfDay
}

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len(s))) }

// safeLong makes a message of any length safe to print.
func safeLong(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		n := min(len(s), 512)
		for n < len(s) && s[n]&0xc0 == 0x80 {
			n++
		}
		b.WriteString(show.Safe(s[:n]))
		s = s[n:]
	}
	return b.String()
}

func levelClass(level string) paint.Class {
	switch level {
	case "warn":
		return paint.Warn
	case "error", "fatal":
		return paint.Bad
	}
	return paint.Dim
}
