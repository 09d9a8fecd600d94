package capacity

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/query"
)

type point = document.CapacityPoint

// recommendOptions are the flags of capacity recommend.
type recommendOptions struct {
	planned
	loads                   loadFlags
	goal                    string
	burstPods, burstSeconds int
	list                    *output.List[point]
}

func recommend(f *cli.Factory) *cobra.Command {
	o := &recommendOptions{goal: string(whatif.Balanced)}
	o.list = &output.List[point]{Columns: pointColumns(), Key: settingsText, Item: func(r point) any { return r }}
	cmd := &cobra.Command{
		Use:   "recommend [NODE…]",
		Short: "Find the warm targets for a goal, and the trade-off around them",
		Long: `Find the warm targets for a goal, with no more failed ADDs than with today's targets:

  balanced          few addresses held and few requests to EC2: the knee of the curve, with at
                    most 12 requests per hour of each node, or as many as it sends today, and no
                    WARM_IP_TARGET without a MINIMUM_IP_TARGET above the pods of each node where
                    pods come and go
  fewest-addresses  the fewest addresses held, at any number of requests
  fewest-calls      the fewest requests
  burst             the fewest addresses that serve a burst of pods on each node without a
                    failed ADD

If others hold at most 1 % more addresses and make at most 1 % more ADDs wait, but send fewer
requests, those are chosen.

Every combination within these bounds is considered: WARM_IP_TARGET up to 64,
MINIMUM_IP_TARGET up to max-pods, WARM_ENI_TARGET up to 4, WARM_PREFIX_TARGET up to 8. They are
simulated as in capacity whatif.

The curve shows the settings that no others beat in both addresses and requests. All nodes get
the same targets, so name nodes that are typical. If they are of one node group, labels are printed
that give its nodes these targets and leave the DaemonSet alone. Ctrl-C shows the best found so far.

-o karpenter prints an EC2NodeClass and a NodePool for each max-pods of the nodes, with the labels,
and -o nodeadm a NodeConfig. They are to be merged into yours.`,
		Example: "  {{.Command}} capacity recommend --type m5.large --pods 20\n" +
			"  {{.Command}} capacity recommend ip-10-0-3-17 --goal fewest-calls\n" +
			"  {{.Command}} capacity recommend --type m5.4xlarge --pods 30 --goal burst --burst-pods 40 --burst-seconds 20",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), f, args) },
	}
	fs := cmd.Flags()
	o.register(f, cmd)
	o.loads.register(fs)
	window := fs.Lookup("for")
	window.Usage, window.DefValue = "simulate this `duration` with each candidate", "6h"
	goals := goalNames()
	fs.StringVar(&o.goal, "goal", o.goal, "`goal`: "+strings.Join(goals, ", "))
	fs.IntVar(&o.burstPods, "burst-pods", 0, "with --goal burst: `N` pods that arrive on each node")
	fs.IntVar(&o.burstSeconds, "burst-seconds", 0, "with --goal burst: within `N` seconds")
	// fails only for unknown flags
	_ = cmd.RegisterFlagCompletionFunc("goal", cobra.FixedCompletions(goals, cobra.ShellCompDirectiveNoFileComp))
	o.list.Register(f, cmd, false)
	output.Forms(cmd, nil, formKarpenter, formNodeadm)
	return cmd
}

// run searches the targets for the goal, and prints them with the trade-off around them.
func (o *recommendOptions) run(ctx context.Context, f *cli.Factory, args []string) error {
	goal := whatif.Goal(o.goal)
	if goals := goalNames(); !slices.Contains(goals, o.goal) {
		return cli.Usage("--goal is %q: want %s", o.goal, strings.Join(goals, ", "))
	}
	if burst := o.given("burst-pods") || o.given("burst-seconds"); burst != (goal == whatif.ServedBurst) {
		return cli.Usage("--goal %s goes with --burst-pods and --burst-seconds", whatif.ServedBurst)
	}
	nodes, names, errs, err := o.nodes(ctx, f, args)
	if err != nil {
		return err
	}
	if after, err := o.changed(f, nodes); err != nil {
		return err
	} else if after != nil {
		nodes = after
	}
	if !o.given("for") {
		o.loads.length = 6 * time.Hour
	}
	load, err := o.loads.load(ctx, f, names, o.given)
	if err != nil {
		return err
	}
	if goal == whatif.ServedBurst {
		if load, err = o.burst(load, nodes, names); err != nil {
			return err
		}
	}
	doc, err := search(ctx, f, nodes, names, load, goal)
	if err != nil {
		return err
	}
	o.complete(&doc, names, errs)
	if err := o.print(f, nodes, doc); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return &cli.Error{Code: cli.ExitInterrupted,
			What: fmt.Sprintf("interrupted: showing the best of %d of %d candidates", doc.Tried, doc.Candidates)}
	case doc.Chosen == nil:
		return unmet(doc)
	case len(errs) > 0:
		return sweep.Partly(f, errs, len(nodes)+len(errs))
	}
	return nil
}

// burst makes a burst on each node all that happens in a load.
func (o *recommendOptions) burst(load whatif.Load, nodes []whatif.Node, names []string) (whatif.Load, error) {
	if o.burstPods < 1 || o.burstSeconds < 1 || o.burstSeconds > 86400 {
		return load, cli.Usage("give --burst-pods, 1 or more, and --burst-seconds, 1 to 86400")
	}
	for _, flag := range []string{"rate", "life", "arrivals", "for"} {
		if o.given(flag) {
			return load, cli.Usage("--goal %s cannot be used with --%s: the burst is all that happens", whatif.ServedBurst, flag)
		}
	}
	within := time.Duration(o.burstSeconds) * time.Second
	load.Steps = nil
	for i, n := range nodes {
		if room := n.Settings.Room() - n.Pods; room < o.burstPods {
			return load, cli.Usage("a burst of %d pods does not fit on %s: max-pods leaves room for %d", o.burstPods, names[i], max(0, room))
		}
		load.Steps = append(load.Steps, whatif.Burst(i, o.burstPods, within)...)
	}
	whatif.SortSteps(load.Steps)
	load.For = within + 10*time.Minute
	return load, nil
}

// complete adds what the search does not know: what applying its patch would do, and the nodes that could
// not be read.
func (o *recommendOptions) complete(doc *document.CapacityRecommendation, names []string, errs []document.NodeError) {
	if doc.Patch != "" {
		doc.Risk, doc.Effects = catalogue.Restart.String(), append([]string{catalogue.Rolled}, o.beyond(names, len(errs))...)
		doc.Effects = append(doc.Effects, o.overridden(slices.Collect(maps.Keys(doc.Labels)), len(names))...)
	}
	if len(doc.Labels) > 0 {
		doc.NodeGroup = o.group
	}
	doc.Errors, doc.Partial = append(doc.Errors, errs...), doc.Partial || len(errs) > 0
}

func (o *recommendOptions) print(f *cli.Factory, nodes []whatif.Node, doc document.CapacityRecommendation) error {
	if f.Globals.Output == "table" && len(o.list.Only) == 0 {
		if err := output.PrintLines(f, recommendation(f, doc)); err != nil {
			return err
		}
	}
	if provisions(f) {
		return recommended(f, nodes, doc)
	}
	return o.list.Print(f, doc.Items, func(chosen []point) any { doc.Items = chosen; return doc })
}

// recommended writes the nodes with the chosen targets for what provisions them.
func recommended(f *cli.Factory, nodes []whatif.Node, doc document.CapacityRecommendation) error {
	if doc.Chosen == nil {
		return nil
	}
	of := nodesByMaxPods(nodes)
	if len(of) == 0 {
		return &cli.Error{Code: cli.ExitFindings, What: "no node has a max-pods", Do: "give --max-pods"}
	}
	return printProvisioned(f, of, doc.Labels)
}

func goalNames() (out []string) {
	for _, g := range whatif.Goals() {
		out = append(out, string(g))
	}
	return out
}

// beyond says which nodes a patch of the DaemonSet changes beyond those that were simulated.
func (p *planned) beyond(names []string, unread int) []string {
	only := ""
	switch {
	case p.instance != "":
		only = "planned " + p.instance + " nodes were"
	case p.all && unread > 0:
		only = fmt.Sprintf("%d of %d nodes were", len(names), len(names)+unread)
	case !p.all && len(names) == 1:
		only = names[0] + " was"
	case !p.all:
		only = fmt.Sprintf("%d named nodes were", len(names))
	}
	if only == "" {
		return nil
	}
	return []string{"It changes the whole DaemonSet, and so every node of the cluster, but only " + only + " simulated."}
}

// try runs the trials of a search, one on each processor.
func try(s *whatif.Search, line progress) error {
	var mu sync.Mutex // of s and line
	var group errgroup.Group
	played := 0
	say := func() string {
		left := time.Duration(float64(line.Took()) / float64(max(1, played)) * float64(s.Left()))
		return fmt.Sprintf("%d candidates simulated, at most %d left, %s", played, s.Left(), max(time.Second, left.Round(time.Second)))
	}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			mu.Lock()
			defer mu.Unlock()
			for line.say(say) {
				t, ok := s.Next()
				if !ok {
					break
				}
				mu.Unlock()
				ended, err := t.Play(func() bool { return line.ctx.Err() == nil })
				mu.Lock()
				if err != nil {
					return err
				}
				if ended {
					s.Add(t)
					played++
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// search finds the trade-off and chooses a point by the goal.
func search(ctx context.Context, f *cli.Factory, nodes []whatif.Node, names []string, load whatif.Load,
	goal whatif.Goal) (document.CapacityRecommendation, error) {
	first := nodes[0].Settings
	doc := document.CapacityRecommendation{
		APIVersion: introspect.APIVersion, Kind: document.KindCapacityRecommendation, Goal: string(goal), Nodes: len(nodes),
		Seconds: load.For.Seconds(),
		Items:   []point{}, Groups: []document.CapacityGroup{}, Labels: map[string]string{}, Effects: []string{}, Errors: []document.NodeError{},
		SampledAt: f.Now().UTC(),
	}
	if slices.ContainsFunc(nodes, func(n whatif.Node) bool { return len(changed(targets(first), targets(n.Settings))) > 0 }) {
		f.Warn("the nodes have different targets today: settings are compared with those of the first")
	}
	line := newProgress(ctx, f)
	defer line.Erase()
	groups := grouped(nodes)
	oneMode(f, nodes)
	today := whatif.NewRun(nodes, load, whatif.Ours)
	today.Group(groups.of)
	for n := 1; today.Next(); n++ {
		if n%1024 == 0 && !line.at("today", today) {
			doc.Partial = true
			break
		}
	}
	if err := today.Err(); err != nil {
		return doc, err
	}
	doc.Today = pointOf(first, first, today.Result())
	candidates := whatif.Candidates(nodes, whatif.DefaultBounds(nodes))
	why := reasons{goal: goal, names: names}
	if goal == whatif.Balanced {
		why.bound = whatif.BoundCalls(today)
		candidates, why.unguarded = whatif.Guarded(today, nodes, candidates)
		doc.CallBound = new(why.bound.Sum())
	}
	doc.Candidates = len(candidates)
	if doc.Partial {
		return doc, nil
	}
	failed := doc.Today.Failed
	if goal == whatif.ServedBurst {
		failed = 0
	}
	found := whatif.NewSearch(today, nodes, candidates, failed, why.bound)
	err := try(found, line)
	if err != nil {
		return doc, err
	}
	doc.Tried = len(candidates) - found.Left()
	doc.Partial = found.Left() > 0
	front := found.Front()
	if c := found.Closest(); c != nil {
		doc.Closest = new(pointOf(first, c.Settings, c.Result))
	}
	for _, p := range front {
		doc.Items = append(doc.Items, pointOf(first, p.Settings, p.Result))
	}
	if i := whatif.Choose(front, goal, why.bound); i >= 0 {
		why.choose(&doc, front, i)
		env := settingsFor(nodes, front[i].Settings)
		doc.Patch = whatif.DaemonSetPatch(env)
		for _, s := range env {
			doc.Labels[config.LabelOf(s.Name)] = s.Value
		}
		doc.Groups, err = groups.outcomes(nodes, load, today, front[i].Settings, line)
	}
	return doc, err
}

// settingsFor returns the variables that give all nodes the chosen targets. They may have different ones today.
func settingsFor(nodes []whatif.Node, chosen whatif.Settings) (env []whatif.Setting) {
	add := func(all []whatif.Setting) {
		for _, s := range all {
			if !slices.Contains(env, s) {
				env = append(env, s)
			}
		}
	}
	for _, n := range nodes {
		add(whatif.Changed(targets(n.Settings), targets(chosen)))
	}
	if chosen.WarmIP > 0 && len(env) > 0 {
		// A patch with one of these two is easily applied where the other is missing.
		add(whatif.Changed(whatif.Settings{}, whatif.Settings{WarmIP: chosen.WarmIP, MinimumIP: chosen.MinimumIP}))
	}
	return env
}

// unmet is the error if no settings meet the goal.
func unmet(doc document.CapacityRecommendation) error {
	e := &cli.Error{Code: cli.ExitFindings, What: "no targets within the bounds meet the goal",
		Do: "try a longer burst, a type with more addresses per interface, or --prefix-delegation"}
	if c := doc.Closest; c != nil {
		e.Why = fmt.Sprintf("with the best, %s, %s still", settingsText(*c), human.Plural(c.Failed, "ADD fails", "ADDs fail"))
		if c.Refused > 0 {
			e.Why += fmt.Sprintf(", and EC2 refuses %s: the subnet has too few free addresses", human.Plural(c.Refused, "request", "requests"))
			e.Do = "free addresses of the subnet, or try fewer pods"
		}
	}
	return e
}

// grouping assigns nodes to groups of one instance type and mode.
type grouping struct {
	of   []int
	each []document.CapacityGroup
}

func grouped(nodes []whatif.Node) (g grouping) {
	for _, n := range nodes {
		s, mode := n.Settings, introspect.ModeSecondaryIP
		if s.PrefixDelegation && s.Instance.PrefixDelegation() {
			mode = introspect.ModePrefix
		}
		i := slices.IndexFunc(g.each, func(x document.CapacityGroup) bool { return x.InstanceType == s.Instance.Type && x.Mode == mode })
		if i < 0 {
			i = len(g.each)
			g.each = append(g.each, document.CapacityGroup{InstanceType: s.Instance.Type, Mode: mode})
		}
		g.each[i].Nodes++
		g.of = append(g.of, i)
	}
	return g
}

// outcomes fills in the results of each group, today and with the chosen settings.
func (g grouping) outcomes(nodes []whatif.Node, load whatif.Load, today *whatif.Run, chosen whatif.Settings,
	line progress) ([]document.CapacityGroup, error) {
	first := nodes[0].Settings
	r := whatif.NewRun(whatif.With(nodes, chosen), load, whatif.Ours)
	r.Group(g.of)
	for n := 1; r.Next(); n++ {
		if n%1024 == 0 && !line.at("node groups", r) {
			return []document.CapacityGroup{}, nil
		}
	}
	was, is := today.Groups(), r.Groups()
	for i := range g.each {
		g.each[i].Today, g.each[i].Chosen = pointOf(first, first, was[i]), pointOf(first, chosen, is[i])
	}
	return g.each, r.Err()
}

// oneMode warns if a single DaemonSet cannot serve all nodes.
func oneMode(f *cli.Factory, nodes []whatif.Node) {
	for _, m := range []struct {
		name string
		has  func(whatif.Settings) bool
	}{
		{"prefix delegation", func(s whatif.Settings) bool { return s.PrefixDelegation || !s.Instance.PrefixDelegation() }},
		{"custom networking", func(s whatif.Settings) bool { return s.CustomNetworking }},
	} {
		with := 0
		for _, n := range nodes {
			if m.has(n.Settings) {
				with++
			}
		}
		if with > 0 && with < len(nodes) {
			f.Warn("%d of %d nodes have no %s: one DaemonSet has one mode, so name the nodes of one mode to get targets for it",
				len(nodes)-with, len(nodes), m.name)
		}
	}
}

// targets returns only the targets of the settings.
func targets(s whatif.Settings) whatif.Settings {
	return whatif.Settings{WarmIP: s.WarmIP, MinimumIP: s.MinimumIP, WarmENI: s.WarmENI, WarmPrefix: s.WarmPrefix}
}

func pointOf(today, s whatif.Settings, r whatif.Result) point {
	return point{Settings: changed(targets(today), targets(s)), Held: r.Held.Avg, Wasted: r.Wasted.Avg, PerHour: r.PerHour(r.Calls.Requests()),
		Waited: r.Waited, Failed: r.Failed, Refused: r.Calls.Refused}
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
		rate("held", "HELD", "subnet addresses held by all nodes together, on average", func(r point) float64 { return r.Held }),
		rate("wasted", "WASTED", "of these, addresses for pods that no pod used", func(r point) float64 { return r.Wasted }).Headed("HELD FREE"),
		rate("calls", "CALLS/H", "requests to EC2 per hour", func(r point) float64 { return r.PerHour }),
		count("waited", "WAITED", "ADDs that found no address at once", func(r point) int { return r.Waited }),
		count("failed", "FAILED", "ADDs that failed, and were retried", func(r point) int { return r.Failed }),
		{Name: "settings", Header: "SETTINGS", Title: "targets that differ from today's", Text: settingsText},
	}
}

// recommendation formats the page above the table: the curve, the chosen point, and the
// patch.
func recommendation(f *cli.Factory, doc document.CapacityRecommendation) []string {
	p := output.Page{Opts: output.TableOptions(f)}
	head := func(text string) { p.Line(table.Cell{Text: text, Class: paint.Head}) }
	gap := func() { p.Lines = append(p.Lines, "") }
	head(fmt.Sprintf("Goal %s: %s, %s, %s each", doc.Goal, human.Plural(doc.Nodes, "node", "nodes"),
		human.Plural(doc.Tried, "candidate", "candidates"), time.Duration(doc.Seconds*float64(time.Second))))
	gap()
	if len(doc.Items) > 0 {
		curve(&p, doc)
		gap()
	}
	if c, t := doc.Chosen, doc.Today; c != nil {
		head("Chosen")
		p.Text(settingsText(*c))
		p.Text(doc.Why)
		p.Text(fmt.Sprintf("%.1f addresses held (today %.1f), %.1f of them used by no pod (today %.1f)", c.Held, t.Held, c.Wasted, t.Wasted))
		p.Text(fmt.Sprintf("%.1f EC2 requests per hour (today %.1f)", c.PerHour, t.PerHour))
		p.Text(adds(*c) + fmt.Sprintf(" (today %d and %d)", t.Waited, t.Failed))
		gap()
		head("Not chosen")
		for _, x := range []struct {
			next *point
			why  string
		}{{doc.Cheaper, doc.NotCheaper}, {doc.FewerCalls, doc.NotFewerCalls}} {
			if n := x.next; n != nil {
				p.Text(fmt.Sprintf("%s: %.1f addresses held, %.1f EC2 requests per hour, %s", settingsText(*n), n.Held, n.PerHour, adds(*n)))
			}
			p.Text(x.why)
		}
		gap()
	}
	if len(doc.Groups) > 1 {
		head("Node groups")
		for _, g := range doc.Groups {
			c, t := g.Chosen, g.Today
			p.Text(fmt.Sprintf("%s %s, %s: %.1f addresses held (today %.1f), %.1f EC2 requests per hour (today %.1f), %s (today %d and %d)",
				g.InstanceType, g.Mode, human.Plural(g.Nodes, "node", "nodes"), c.Held, t.Held, c.PerHour, t.PerHour, adds(c), t.Waited, t.Failed))
		}
		gap()
	}
	if doc.NodeGroup != "" {
		head("Labels for " + doc.NodeGroup)
		p.Text("The pools follow them at once. Set them in the node group too, so that new nodes register with them.")
		p.Lines = append(p.Lines, "kubectl label nodes -l "+doc.NodeGroup+" --overwrite "+labelList(doc.Labels, " "))
		gap()
		head("Or for every node of the cluster")
	}
	if doc.Patch != "" {
		p.Text("risk: " + strings.Join(doc.Effects, " "))
		head("kubectl -n " + f.Globals.DaemonSetNamespace + " patch daemonset aws-node --patch-file /dev/stdin <<EOF")
		p.Lines = append(p.Lines, strings.Split(strings.TrimRight(doc.Patch, "\n"), "\n")...)
		p.Lines = append(p.Lines, "EOF", "")
	}
	if doc.Chosen != nil && doc.Patch == "" {
		p.Text("Nothing needs to change.")
		gap()
	}
	if len(doc.Items) > 0 {
		head("Trade-off")
	}
	return p.Lines
}

func adds(p point) string {
	return human.Plural(p.Waited, "ADD waits", "ADDs wait") + fmt.Sprintf(" and %d fail", p.Failed)
}

// reasons is what a choice depends on.
type reasons struct {
	goal      whatif.Goal
	names     []string         // of the nodes
	bound     whatif.CallBound // balanced only
	unguarded bool             // candidates were left out because their pools would follow every pod
}

// choose notes the chosen point of the front with its neighbours, and explains the choice.
func (w reasons) choose(doc *document.CapacityRecommendation, front []whatif.Point, i int) {
	c, rest := &doc.Items[i], "no more failed ADDs than today's"
	if w.goal == whatif.ServedBurst {
		rest = "no failed ADD in the burst"
	}
	guard := ""
	if w.unguarded {
		guard = " As upstream advises, WARM_IP_TARGET is considered only with a MINIMUM_IP_TARGET above the pods of each node where pods come and go."
	}
	best := ""
	switch w.goal {
	case whatif.Balanced:
		best = fmt.Sprintf("The knee of the curve, of the settings with %s and %s.", rest, w.most()) + guard
		if w.exceeds(front[i]) != "" {
			best = fmt.Sprintf("No settings have %s and %s; these send the fewest requests.", rest, w.most()) + guard
		}
	case whatif.FewestCalls:
		best = "No others send EC2 fewer requests with " + rest + "; of those that send as few, these hold the fewest addresses."
	default:
		best = "No others hold fewer addresses with " + rest + "."
		if i > 0 {
			best = fmt.Sprintf("The fewest addresses with %s, give or take 1 %%: of those that hold at most %.1f and make at most 1 %% "+
				"more ADDs wait, these send EC2 the fewest requests.", rest, doc.Items[0].Held*(1+whatif.Tie))
		}
	}
	if doc.Partial {
		best = "The best of those tried for this goal."
	}
	doc.Chosen, doc.Why = c, best
	doc.NotCheaper, doc.NotFewerCalls = "No settings on the curve hold fewer addresses.", "No settings on the curve send EC2 fewer requests."
	if i > 0 {
		n := doc.Items[i-1]
		more := fmt.Sprintf("%.1f more", n.PerHour-c.PerHour)
		if n.PerHour < c.PerHour { // above the bound of a node
			more = fmt.Sprintf("%.1f fewer", c.PerHour-n.PerHour)
		}
		doc.Cheaper, doc.NotCheaper = &n,
			fmt.Sprintf("Holding %.2f fewer addresses, it sends %s requests per hour.", c.Held-n.Held, more)+w.exceeds(front[i-1])
	}
	if i+1 < len(doc.Items) {
		n := doc.Items[i+1]
		doc.FewerCalls, doc.NotFewerCalls = &n,
			fmt.Sprintf("Sending %.1f fewer requests per hour, it holds %.2f more addresses.", c.PerHour-n.PerHour, n.Held-c.Held)
	}
}

// most is the bound in words.
func (w reasons) most() string {
	if len(w.bound) == 1 || slices.Max(w.bound) == slices.Min(w.bound) {
		return fmt.Sprintf("at most %.1f EC2 requests per hour of each node", w.bound[0])
	}
	return fmt.Sprintf("at most %.1f EC2 requests per hour of each node, or as many as it sends today", slices.Min(w.bound))
}

// exceeds says which node exceeds its bound; empty if none does.
func (w reasons) exceeds(p whatif.Point) string {
	i, rate, above := p.Above(w.bound)
	if !above {
		return ""
	}
	return fmt.Sprintf(" %s would send %.1f, above its bound of %.1f.", w.names[i], rate, w.bound[i])
}

const curveWidth, curveHeight = 60, 12

// curve plots addresses held against requests: the trade-off, the chosen point and today's.
func curve(p *output.Page, doc document.CapacityRecommendation) {
	least, most := doc.Today, doc.Today
	for _, x := range doc.Items {
		most.Held, most.PerHour = max(most.Held, x.Held), max(most.PerHour, x.PerHour)
		least.Held = min(least.Held, x.Held)
	}
	low, high, top := fmt.Sprintf("%.1f", least.Held), fmt.Sprintf("%.1f", most.Held), fmt.Sprintf("%.1f", most.PerHour)
	labels, width, height := len(top), curveWidth, curveHeight
	if room := p.Opts.Width - labels - 2; p.Opts.Width > 0 {
		width = min(width, max(room, len(low)+1+len(high)))
	}
	if most.PerHour == 0 {
		top, height = "0", 1
	}
	cells := make([][]byte, height)
	for y := range cells {
		cells[y] = bytes.Repeat([]byte{' '}, width)
	}
	put := func(q point, mark func(byte) byte) {
		x, y := 0, 0
		if most.Held > least.Held {
			x = int(math.Round((q.Held - least.Held) / (most.Held - least.Held) * float64(width-1)))
		}
		if most.PerHour > 0 {
			y = int(math.Round(q.PerHour / most.PerHour * float64(height-1)))
		}
		at := &cells[height-1-y][x]
		*at = mark(*at)
	}
	for _, x := range doc.Items {
		put(x, func(byte) byte { return '*' })
	}
	legend := "* trade-off  X chosen  T today"
	put(doc.Today, func(byte) byte { return 'T' })
	put(*doc.Chosen, func(was byte) byte {
		if was == 'T' {
			legend = "* trade-off  @ chosen and today"
			return '@'
		}
		return 'X'
	})
	p.Text("EC2 requests per hour by addresses held")
	p.Text(legend)
	for y, row := range cells {
		label := ""
		switch y {
		case 0:
			label = top
		case height - 1:
			label = "0"
		}
		p.Lines = append(p.Lines, strings.TrimRight(fmt.Sprintf("%*s |%s", labels, label, row), " "))
	}
	if high == low {
		high = ""
	}
	p.Lines = append(p.Lines, fmt.Sprintf("%*s +%s", labels, "", strings.Repeat("-", width)),
		strings.TrimRight(fmt.Sprintf("%*s  %s%*s", labels, "", low, max(0, width-len(low)), high), " "))
}
