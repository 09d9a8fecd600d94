package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
)

// Goals of a recommendation.
const (
	goalAddresses = "fewest-addresses"
	goalCalls     = "fewest-calls"
	goalBurst     = "burst"
)

var goals = []string{goalAddresses, goalCalls, goalBurst}

type point = introspect.CapacityPoint

func recommend(f *cli.Factory) *cobra.Command {
	var p planned
	var l loadFlags
	var pods, seconds int
	goal := goalAddresses
	list := &output.List[point]{Columns: pointColumns(), Key: settingsText, Item: func(r point) any { return r }}
	cmd := &cobra.Command{
		Use:   "recommend [NODE…]",
		Short: "Find the warm targets for a goal, and the trade-off around them",
		Long: `Find the warm targets with which nodes hold the fewest addresses, or send EC2 the fewest
requests, without more failed ADDs than with today's; or that hold the fewest addresses and serve
a burst of pods on each node without a failed ADD. Every combination within these bounds is
considered: WARM_IP_TARGET up to 64, MINIMUM_IP_TARGET up to max-pods, WARM_ENI_TARGET up to 4,
WARM_PREFIX_TARGET up to 8. They are simulated as by capacity whatif.

The curve shows the settings that no others better in both addresses and requests. All nodes get
the same targets. Ctrl-C shows the best until then.`,
		Example: "  {{.Command}} capacity recommend --type m5.large --pods 20\n" +
			"  {{.Command}} capacity recommend ip-10-0-3-17 --goal fewest-calls\n" +
			"  {{.Command}} capacity recommend --type m5.4xlarge --pods 30 --goal burst --burst-pods 40 --burst-seconds 20",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := list.Check(f); err != nil {
				return err
			}
			if !slices.Contains(goals, goal) {
				return cli.Usage("--goal is %q: want %s", show.Safe(goal), strings.Join(goals, ", "))
			}
			if burst := p.given("burst-pods") || p.given("burst-seconds"); burst != (goal == goalBurst) {
				return cli.Usage("--goal %s goes with --burst-pods and --burst-seconds", goalBurst)
			}
			ctx := cmd.Context()
			nodes, names, errs, err := p.nodes(ctx, f, args)
			if err != nil {
				return err
			}
			if !p.given("for") {
				l.length = 6 * time.Hour
			}
			load, err := l.load(f, names, p.given)
			if err != nil {
				return err
			}
			if goal == goalBurst {
				if pods < 1 || seconds < 1 || seconds > 86400 {
					return cli.Usage("give --burst-pods, 1 or more, and --burst-seconds, 1 to 86400")
				}
				load.Steps = nil
				for i, n := range nodes {
					if room := n.Settings.Room() - n.Pods; room < pods {
						return cli.Usage("a burst of %d pods does not fit on %s: max-pods leaves room for %d", pods, show.Safe(names[i]), max(0, room))
					}
					load.Steps = append(load.Steps, whatif.Burst(i, pods, time.Duration(seconds)*time.Second)...)
				}
				whatif.SortSteps(load.Steps)
				load.For = time.Duration(seconds)*time.Second + 10*time.Minute
			}
			if after, err := p.changed(f, nodes); err != nil {
				return err
			} else if after != nil {
				nodes = after
			}
			doc, err := search(ctx, f, nodes, load, goal)
			if err != nil {
				return err
			}
			doc.Errors, doc.Partial = append(doc.Errors, errs...), doc.Partial || len(errs) > 0
			if f.Globals.Output == "table" && len(list.Only) == 0 {
				if err := output.PrintLines(f, recommendation(f, doc)); err != nil {
					return err
				}
			}
			if err := list.Print(f, doc.Items, func(chosen []point) any { doc.Items = chosen; return doc }); err != nil {
				return err
			}
			switch {
			case ctx.Err() != nil:
				return &cli.Error{Code: cli.ExitInterrupted, What: fmt.Sprintf("interrupted: the best of %d of %d candidates is shown", doc.Tried, doc.Candidates)}
			case doc.Chosen == nil:
				return &cli.Error{Code: cli.ExitFindings, What: "no targets within the bounds meet the goal", Do: "try a longer burst, a type with more addresses per interface, or --prefix-delegation"}
			case len(errs) > 0:
				return sweep.Partly(f, errs, len(nodes)+len(errs))
			}
			return nil
		},
	}
	fs := cmd.Flags()
	p.register(f, cmd)
	l.register(fs)
	fs.Lookup("for").Usage = "simulate this `duration` with each candidate; default: 6h"
	fs.StringVar(&goal, "goal", goal, "`goal`: "+strings.Join(goals, ", "))
	fs.IntVar(&pods, "burst-pods", 0, "with --goal burst: `N` pods that come to each node")
	fs.IntVar(&seconds, "burst-seconds", 0, "with --goal burst: within `N` seconds")
	_ = cmd.RegisterFlagCompletionFunc("goal", cobra.FixedCompletions(goals, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	list.Register(f, cmd, false)
	return cmd
}

// search finds the trade-off and chooses by the goal.
func search(ctx context.Context, f *cli.Factory, nodes []whatif.Node, load whatif.Load, goal string) (introspect.CapacityRecommendation, error) {
	first := nodes[0].Settings
	doc := introspect.CapacityRecommendation{
		APIVersion: introspect.APIVersion, Kind: introspect.KindCapacityRecommendation, Goal: goal, Nodes: len(nodes), Seconds: load.For.Seconds(),
		Items: []point{}, Errors: []introspect.NodeError{}, SampledAt: f.Now().UTC(),
	}
	if slices.ContainsFunc(nodes, func(n whatif.Node) bool { return len(changed(targets(first), targets(n.Settings))) > 0 }) {
		f.Warn("the nodes have different targets today: settings are compared with those of the first")
	}
	today := whatif.NewRun(nodes, load, whatif.Ours)
	for today.Next() {
	}
	if err := today.Err(); err != nil {
		return doc, err
	}
	doc.Today = pointOf(first, first, today.Result())
	failed := doc.Today.Failed
	if goal == goalBurst {
		failed = 0
	}
	candidates := whatif.Candidates(first, whatif.DefaultBounds(first))
	doc.Candidates, doc.Tried = len(candidates), len(candidates)
	line := newProgress(ctx, f)
	front, err := whatif.Search(nodes, load, whatif.Ours, candidates, failed, func(tried int) bool {
		if !line.say(func() string { return fmt.Sprintf("candidates %d/%d", tried, len(candidates)) }) {
			doc.Tried, doc.Partial = tried, true
			return false
		}
		return true
	})
	line.erase()
	if err != nil {
		return doc, err
	}
	for _, p := range front {
		doc.Items = append(doc.Items, pointOf(first, p.Settings, p.Result))
	}
	if n := len(front); n > 0 {
		i := 0
		if goal == goalCalls {
			i = n - 1
		}
		doc.Chosen = &doc.Items[i]
		var env []whatif.Setting
		for _, n := range nodes { // they may have different ones
			for _, s := range whatif.Changed(targets(n.Settings), targets(front[i].Settings)) {
				if !slices.Contains(env, s) {
					env = append(env, s)
				}
			}
		}
		doc.Patch = whatif.DaemonSetPatch(env)
	}
	return doc, nil
}

// targets are settings with the targets alone.
func targets(s whatif.Settings) whatif.Settings {
	return whatif.Settings{WarmIP: s.WarmIP, MinimumIP: s.MinimumIP, WarmENI: s.WarmENI, WarmPrefix: s.WarmPrefix}
}

func pointOf(today, s whatif.Settings, r whatif.Result) point {
	return point{Settings: changed(targets(today), targets(s)), Held: r.Held.Avg, Wasted: r.Wasted.Avg, PerHour: r.PerHour(r.Calls.Requests()), Waited: r.Waited, Failed: r.Failed}
}

func settingsText(p point) string {
	var parts []string
	for _, s := range p.Settings {
		parts = append(parts, s.Name+"="+s.Value)
	}
	if len(parts) == 0 {
		return "today's"
	}
	return strings.Join(parts, " ")
}

func pointColumns() []query.Column[point] {
	rate := func(name, header, title string, of func(point) float64) query.Column[point] {
		return query.Column[point]{
			Name: name, Header: header, Title: title, Right: true, Text: func(r point) string { return fmt.Sprintf("%.1f", of(r)) },
			Number: func(r point) (float64, bool) { return of(r), true },
		}
	}
	count := func(name, header, title string, of func(point) int) query.Column[point] {
		return query.Count(name, header, title, 1, func(r point) *int { n := of(r); return &n })
	}
	return []query.Column[point]{
		rate("held", "HELD", "addresses of subnets that all nodes hold, on average", func(r point) float64 { return r.Held }),
		rate("wasted", "WASTED", "of these, addresses for pods that no pod had", func(r point) float64 { return r.Wasted }),
		rate("calls", "CALLS/H", "requests to EC2 per hour", func(r point) float64 { return r.PerHour }),
		count("waited", "WAITED", "ADDs that found no address at once", func(r point) int { return r.Waited }),
		count("failed", "FAILED", "ADDs that failed, and were repeated", func(r point) int { return r.Failed }),
		{Name: "settings", Header: "SETTINGS", Title: "targets that differ from today's", Text: settingsText},
	}
}

// recommendation is the page above the table: the curve, the chosen point, and the patch.
func recommendation(f *cli.Factory, doc introspect.CapacityRecommendation) []string {
	p := output.Page{Opts: output.TableOptions(f)}
	head := func(text string) { p.Line(p.Opts.Palette.Paint(paint.Head, text)) }
	head(fmt.Sprintf("Goal %s: %d nodes, %d candidates, %s each", doc.Goal, doc.Nodes, doc.Tried, time.Duration(doc.Seconds*float64(time.Second))))
	p.Lines = append(p.Lines, "")
	p.Lines = append(p.Lines, curve(doc)...)
	p.Lines = append(p.Lines, "")
	if c, t := doc.Chosen, doc.Today; c != nil {
		head("Chosen: " + settingsText(*c))
		p.Line(fmt.Sprintf("%.1f addresses held where today's settings hold %.1f, of them %.1f for no pod (today %.1f)", c.Held, t.Held, c.Wasted, t.Wasted))
		p.Line(fmt.Sprintf("%.1f EC2 requests per hour (today %.1f)", c.PerHour, t.PerHour))
		p.Line(fmt.Sprintf("%d ADDs wait and %d fail (today %d and %d)", c.Waited, c.Failed, t.Waited, t.Failed))
		p.Lines = append(p.Lines, "")
	}
	if doc.Patch != "" {
		head("kubectl -n " + f.Globals.DaemonSetNamespace + " patch daemonset aws-node --patch-file /dev/stdin <<EOF")
		p.Lines = append(p.Lines, strings.Split(strings.TrimRight(doc.Patch, "\n"), "\n")...)
		p.Lines = append(p.Lines, "EOF", "")
	}
	head("Trade-off")
	return p.Lines
}

const curveWidth, curveHeight = 60, 12

// curve draws addresses held against requests: the trade-off, the chosen point and today's.
func curve(doc introspect.CapacityRecommendation) []string {
	all := append(slices.Clone(doc.Items), doc.Today)
	most := point{}
	least := all[0]
	for _, p := range all {
		most.Held, most.PerHour = max(most.Held, p.Held), max(most.PerHour, p.PerHour)
		least.Held = min(least.Held, p.Held)
	}
	cells := make([][]rune, curveHeight)
	for y := range cells {
		cells[y] = []rune(strings.Repeat(" ", curveWidth))
	}
	put := func(p point, mark rune) {
		x, y := 0, 0
		if most.Held > least.Held {
			x = int((p.Held - least.Held) / (most.Held - least.Held) * (curveWidth - 1))
		}
		if most.PerHour > 0 {
			y = int(p.PerHour / most.PerHour * (curveHeight - 1))
		}
		cells[curveHeight-1-y][x] = mark
	}
	for _, p := range doc.Items {
		put(p, '*')
	}
	put(doc.Today, 'T')
	if doc.Chosen != nil {
		put(*doc.Chosen, 'X')
	}
	out := []string{fmt.Sprintf("%9s  EC2 requests per hour    * trade-off  X chosen  T today", "")}
	for y, row := range cells {
		label := ""
		switch y {
		case 0:
			label = fmt.Sprintf("%.1f", most.PerHour)
		case curveHeight - 1:
			label = "0"
		}
		out = append(out, strings.TrimRight(fmt.Sprintf("%9s |%s", label, string(row)), " "))
	}
	return append(out, fmt.Sprintf("%9s +%s", "", strings.Repeat("-", curveWidth)),
		fmt.Sprintf("%11s%-*s%.1f addresses held", "", curveWidth-8, fmt.Sprintf("%.1f", least.Held), most.Held))
}
