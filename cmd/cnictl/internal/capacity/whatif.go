package capacity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/capacity/maxpods"
	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/lazy"
	"cnictl/tui/query"
)

// modelUpstream is --model's word for upstream's daemon; that of documents is taken too.
const modelUpstream = "upstream"

type prediction = document.CapacityWhatIf

// planned describes the nodes to simulate, as they are today and with changed settings.
type planned struct {
	nodeSettings
	set, today []string
	count      int
	all        bool
	given      func(flag string) bool

	group    string         // selects the node group that all nodes belong to; "" if there is none, or with --all
	labelled map[string]int // by variable: nodes on which a label overrides it
}

func (p *planned) register(f *cli.Factory, cmd *cobra.Command) {
	fs := cmd.Flags()
	p.nodeSettings.register(f, cmd, fs)
	for flag, text := range map[string]string{
		"type": "instance `type` of planned nodes", "pods": "`N` pods with an address on each of these nodes at the start",
		"max-pods": "kubelet's max-pods; default: today's, of --type what " + maxpods.RuleOurs + " recommends",
	} {
		fs.Lookup(flag).Usage = text
	}
	fs.IntVar(&p.count, "count", 1, "`N` nodes of --type")
	fs.BoolVar(&p.all, "all", false, "start from all nodes")
	fs.StringSliceVar(&p.set, "set", nil, "change a setting, as the daemon's environment has it: `NAME=VALUE`")
	fs.StringSliceVar(&p.today, "today", nil, "with --type: a setting today: `NAME=VALUE`; default: the manifest's")
	p.given = fs.Changed
}

// change applies the changed settings to today's.
func (p *planned) change(f *cli.Factory, s whatif.Settings) (whatif.Settings, error) {
	for _, k := range whatif.Knobs() {
		if k.Flag != "" && p.given(k.Flag) {
			if err := k.Set(&s, k.Text(p.Settings)); err != nil {
				return s, cli.Usage("--%s: %s", k.Flag, err)
			}
		}
	}
	return s, assign(f, "set", p.set, &s)
}

// nodes returns today's nodes with their names. errs are the nodes that could not be
// simulated.
func (p *planned) nodes(ctx context.Context, f *cli.Factory, names []string) (out []whatif.Node, called []string, errs []document.NodeError,
	err error) {
	if p.instance == "" {
		if len(names) == 0 && !p.all {
			return nil, nil, nil, cli.Usage("give NODEs, --all for all of them, or --type and --pods of planned nodes")
		}
		if len(names) > 0 && p.all || p.given("pods") || p.given("count") || len(p.today) > 0 {
			return nil, nil, nil, cli.Usage("give only one of NODEs, --all, and --type with --pods, --count and --today")
		}
		return p.live(ctx, f, names)
	}
	if len(names) > 0 || p.all {
		return nil, nil, nil, cli.Usage("--type is for planned nodes: omit NODEs and --all")
	}
	const most = 5000
	if p.pods < 0 || p.count < 1 || p.count > most {
		return nil, nil, nil, cli.Usage("give --pods, 0 or more, and a --count of 1 to %d", most)
	}
	known := tableOf(f)
	i, err := known.lookup(p.instance)
	if err != nil {
		return nil, nil, nil, err
	}
	s := whatif.Settings{Instance: i, WarmENI: 1, WarmPrefix: 1}
	if err := assign(f, "today", p.today, &s); err != nil {
		return nil, nil, nil, err
	}
	if s.MaxPods == 0 {
		s.MaxPods = maxpods.Compute(maxpods.Input{InstanceType: i.Type, Table: known.Table, PrefixDelegation: s.PrefixDelegation,
			CustomNetworking: s.CustomNetworking, PodENI: s.Trunk, MaxENI: s.MaxENI}).Recommended
	}
	if s.MaxPods == 0 {
		return nil, nil, nil, cli.Usage("the vCPUs of %s are unknown, and so is its max-pods: give --today maxPods=N", i.Type)
	}
	effective(f, &s)
	if p.pods > s.Room() {
		return nil, nil, nil,
			cli.Usage("%s not fit on %s with max-pods %d, two of them in the host's network", human.Plural(p.pods, "pod does", "pods do"),
				i.Type, s.MaxPods)
	}
	for n := range p.count {
		out = append(out, whatif.Node{Settings: s, Pods: p.pods})
		called = append(called, fmt.Sprintf("node-%d", n+1))
	}
	return out, called, nil, nil
}

// live reads the existing nodes.
func (p *planned) live(ctx context.Context, f *cli.Factory, names []string) (out []whatif.Node, called []string, errs []document.NodeError,
	err error) {
	nodes, err := access.FleetOf(ctx, f, names)
	if err != nil {
		return nil, nil, nil, err
	}
	defer nodes.Close()
	list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
	if interrupted {
		return nil, nil, nil, sweep.Verdict(f, list, true)
	}
	p.labelled = map[string]int{}
	groups := map[string]bool{}
	for _, n := range list.Items {
		name := n.Metadata.Name
		if n.State == document.StateNoDaemon {
			continue
		}
		node, why := fleet.WhatIf(n)
		if why != "" {
			errs = append(errs, document.NodeError{Node: name, Reason: introspect.ReasonNotServed, Message: why})
			continue
		}
		out, called = append(out, node), append(called, name)
		groups[groupOf(n)] = true
		for _, variable := range n.Summary.Targets.FromLabels {
			p.labelled[variable]++
		}
	}
	if len(groups) == 1 && !p.all {
		p.group = slices.Collect(maps.Keys(groups))[0]
	}
	if len(out) == 0 {
		e := &cli.Error{Code: cli.ExitUnreachable, What: "none of the nodes can be simulated", Do: "give --type and --pods"}
		if len(errs) > 0 {
			e.Why = sweep.Failed(errs[:1])
		}
		return nil, nil, nil, e
	}
	return out, called, errs, nil
}

// labelValue matches a label's value that goes into a command as it is.
var labelValue = lazy.Regexp(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// groupOf selects the node group of a node; "" if it has none.
func groupOf(n document.NodeIPAM) string {
	if n.Object == nil {
		return ""
	}
	label, name := store.NodeGroup(n.Object)
	if !labelValue().MatchString(name) {
		return ""
	}
	return label + "=" + name
}

// overridden says on which nodes these labels override the DaemonSet's settings.
func (p *planned) overridden(labels []string, nodes int) (out []string) {
	for _, variable := range slices.Sorted(maps.Keys(p.labelled)) {
		if label := config.LabelOf(variable); label != "" && slices.Contains(labels, label) {
			out = append(out, fmt.Sprintf("On %d of %d nodes the label %s overrides %s: change it there.",
				p.labelled[variable], nodes, label, variable))
		}
	}
	return out
}

// whatIfOptions are the flags of capacity whatif.
type whatIfOptions struct {
	planned
	loads loadFlags
	model string
	list  *output.List[prediction]
}

func whatIf(f *cli.Factory) *cobra.Command {
	o := &whatIfOptions{model: whatif.Ours.Name}
	o.list = &output.List[prediction]{Columns: whatIfColumns(), Key: func(r prediction) string { return r.Name },
		Item: func(r prediction) any { return r }}
	cmd := &cobra.Command{
		Use:   "whatif [NODE…]",
		Short: "Predict what nodes would hold and cost with other settings",
		Long: `Predict what the pools of nodes hold, how many EC2 requests that takes and how many ADDs wait
or fail, with today's settings and with others. The pools follow the daemon's own planner while
pods come and go; EC2 takes its usual time, and refuses only what --subnet-free has no room for.

Start from NODEs or --all, as they are now or at a moment of a recording (--replay FILE --at
TIME), or with --type and --pods from planned nodes. Flags of settings and --set change today's
settings. Pods arrive at random (--rate, --life), or as listed in --arrivals: on the named node,
or with "node": null on the one with the fewest pods; a node's pods leave in random order. If
--arrivals is a recording, pods come and go as they did while it was made: on the same nodes, or
with --type on those with the fewest pods.

--model upstream uses upstream's rules instead of ours. With ours, each case in which upstream's
daemon would behave differently is listed, with the reason.`,
		Example: "  {{.Command}} capacity whatif --type m5.large --pods 20 --count 50 --warm-ip-target 2\n" +
			"  {{.Command}} capacity whatif --all --set WARM_IP_TARGET=2 --set MINIMUM_IP_TARGET=12 --rate 30\n" +
			"  {{.Command}} capacity whatif --type m5.4xlarge --pods 50 --prefix-delegation --arrivals day.jsonl\n" +
			"  {{.Command}} capacity whatif --all --set WARM_IP_TARGET=2 --replay day.cnirec --at +0m --arrivals day.cnirec",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: completion.Nodes(f),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), f, args) },
	}
	fs := cmd.Flags()
	o.register(f, cmd)
	o.loads.register(fs)
	fs.StringVar(&o.model, "model", o.model, "whose `rules`: ours or upstream")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("model",
		cobra.FixedCompletions([]string{whatif.Ours.Name, modelUpstream}, cobra.ShellCompDirectiveNoFileComp))
	o.list.Register(f, cmd, false)
	return cmd
}

// run simulates the nodes as they are and as they would be, and prints both.
func (o *whatIfOptions) run(ctx context.Context, f *cli.Factory, args []string) error {
	m, ok := map[string]whatif.Model{whatif.Ours.Name: whatif.Ours, modelUpstream: whatif.Upstream,
		whatif.Upstream.Name: whatif.Upstream}[o.model]
	if !ok {
		return cli.Usage("--model is %q: want %s or %s", o.model, whatif.Ours.Name, modelUpstream)
	}
	nodes, names, errs, err := o.nodes(ctx, f, args)
	if err != nil {
		return err
	}
	load, err := o.loads.load(ctx, f, names, o.given)
	if err != nil {
		return err
	}
	after, err := o.changed(f, nodes)
	if err != nil {
		return err
	}
	doc := document.CapacityWhatIfList{
		APIVersion: introspect.APIVersion, Kind: document.KindCapacityWhatIfList, Model: m.Name, Nodes: len(nodes), Items: []prediction{},
		Errors: append([]document.NodeError{}, errs...), Partial: len(errs) > 0, SampledAt: f.Now().UTC(), Seconds: load.For.Seconds(),
	}
	for _, n := range nodes {
		doc.Pods += n.Pods
	}
	if err := (simulated{names, nodes, after, load, m}).run(ctx, f, &doc); err != nil {
		return err
	}
	for _, text := range o.overridden(labelsIn(doc), len(nodes)) {
		f.Warn("%s", text)
	}
	if err := o.list.Print(f, doc.Items, func(chosen []prediction) any { doc.Items = chosen; return doc }); err != nil {
		return err
	}
	if !output.Structured(f) && f.Globals.Output != output.CSV {
		explain(f, doc)
	}
	switch {
	case ctx.Err() != nil:
		return &cli.Error{Code: cli.ExitInterrupted, What: "interrupted: showing what was simulated so far"}
	case len(errs) > 0:
		return sweep.Partly(f, errs, len(nodes)+len(errs))
	}
	return nil
}

// simulated are nodes with the load to simulate; changed is nil if nothing changes.
type simulated struct {
	names          []string
	today, changed []whatif.Node
	load           whatif.Load
	model          whatif.Model
}

// run adds to a document what the nodes hold and cost, today and changed.
func (x simulated) run(ctx context.Context, f *cli.Factory, doc *document.CapacityWhatIfList) error {
	show := newProgress(ctx, f)
	defer show.Erase()
	for _, as := range []struct {
		name  string
		nodes []whatif.Node
	}{{"today", x.today}, {"changed", x.changed}} {
		if as.nodes == nil || doc.Partial && ctx.Err() != nil {
			continue
		}
		item, until, err := predict(ctx, as.nodes, x.names, x.load, x.model, func(r *whatif.Run) bool { return show.at(as.name, r) })
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			doc.Seconds = until.Seconds()
		}
		item.Name, item.Settings = as.name, changed(x.today[0].Settings, as.nodes[0].Settings)
		doc.Items = append(doc.Items, item)
		doc.Partial = doc.Partial || ctx.Err() != nil
	}
	return nil
}

// labelsIn returns the labels of the settings that were changed.
func labelsIn(doc document.CapacityWhatIfList) (labels []string) {
	for _, r := range doc.Items {
		for _, s := range r.Settings {
			labels = append(labels, config.LabelOf(s.Name))
		}
	}
	return labels
}

// changed returns the nodes with changed settings; nil if nothing changes.
func (p *planned) changed(f *cli.Factory, nodes []whatif.Node) ([]whatif.Node, error) {
	out := make([]whatif.Node, len(nodes))
	same, warned := true, map[string]bool{}
	for i, n := range nodes {
		s, err := p.change(f, n.Settings)
		if err != nil {
			return nil, err
		}
		if !warned[s.Instance.Type] {
			warned[s.Instance.Type] = true
			effective(f, &s)
		}
		s = s.Possible()
		same = same && len(changed(n.Settings, s)) == 0
		out[i] = whatif.Node{Settings: s, Pods: n.Pods}
	}
	if same {
		return nil, nil
	}
	return out, nil
}

// predict simulates a load under a model; for ours it repeats the load under upstream's
// rules. It also returns how much time was simulated. It calls going now and then, and stops
// if that returns false.
func predict(
	ctx context.Context, nodes []whatif.Node, names []string, load whatif.Load, m whatif.Model, going func(*whatif.Run) bool,
) (prediction, time.Duration, error) {
	each := make([]int, len(nodes)) // a group per node: failed ADDs are counted for each
	for i := range each {
		each[i] = i
	}
	play := func(m whatif.Model) (*whatif.Run, error) {
		r := whatif.NewRun(nodes, load, m)
		r.Group(each)
		for n := 1; r.Next(); n++ {
			if n%1024 == 0 && !going(r) {
				break
			}
		}
		return r, r.Err()
	}
	run, err := play(m)
	if err != nil {
		return prediction{}, 0, err
	}
	r := run.Result()
	out := prediction{
		Held: document.CapacitySpread(r.Held), Wasted: document.CapacitySpread(r.Wasted),
		Calls: document.CapacityCalls{
			PerHour: r.PerHour(r.Calls.Requests()), Attaches: r.PerHour(r.Calls.NewENIs), Assigns: r.PerHour(r.Calls.Assigns),
			Releases: r.PerHour(r.Calls.Releases), Detaches: r.PerHour(r.Calls.Detaches), Refused: r.PerHour(r.Calls.Refused),
		},
		ADDs: r.ADDs, Waited: r.Waited, Failed: r.Failed, Waiting: r.Waiting, LongestWait: r.Longest.Seconds(), Unplaced: r.Unplaced,
		Different: []string{},
		Failures:  failures(nodes, names, load, run.Groups()),
	}
	if m.Name != whatif.Ours.Name || ctx.Err() != nil {
		return out, r.For, nil
	}
	run, err = play(whatif.Upstream)
	if err != nil || ctx.Err() != nil {
		return out, r.For, err
	}
	theirs := run.Result()
	o := document.CapacityOutcome{Held: theirs.Held.Avg, Wasted: theirs.Wasted.Avg, PerHour: theirs.PerHour(theirs.Calls.Requests()),
		Failed: theirs.Failed, Waiting: theirs.Waiting}
	if (o != document.CapacityOutcome{Held: out.Held.Avg, Wasted: out.Wasted.Avg, PerHour: out.Calls.PerHour, Failed: out.Failed,
		Waiting: out.Waiting}) {
		out.Upstream, out.Different = &o, whatif.Differences(nodes[0].Settings)
	}
	return out, r.For, nil
}

// failures returns the nodes on which ADDs fail, the worst first, each with the reason.
func failures(nodes []whatif.Node, names []string, load whatif.Load, of []whatif.Result) []document.CapacityFailure {
	out := []document.CapacityFailure{}
	for i, r := range of {
		if r.Failed == 0 || i >= len(names) {
			continue
		}
		why, s := "no address was free in time: its pool grows more slowly than pods come, or its addresses are cooling", nodes[i].Settings
		switch {
		case s.Room() > s.Capacity():
			why = fmt.Sprintf("max-pods allows %d pods with an address, but it has addresses for only %d", s.Room(), s.Capacity())
		case r.Calls.Refused > 0:
			why = fmt.Sprintf("the subnet has only %s", human.Plural(load.Free, "free address", "free addresses"))
		}
		out = append(out, document.CapacityFailure{Node: names[i], Failed: r.Failed, Waiting: r.Waiting, Why: why})
	}
	slices.SortStableFunc(out, func(a, b document.CapacityFailure) int { return cmp.Compare(b.Failed, a.Failed) })
	return out
}

// mostFailing is how many of the nodes on which ADDs fail are named.
const mostFailing = 5

// explain prints below the table what changed, and where upstream differs.
func explain(f *cli.Factory, doc document.CapacityWhatIfList) {
	f.Note(fmt.Sprintf("%s with %s, simulated for %s", human.Plural(doc.Nodes, "node", "nodes"), human.Plural(doc.Pods, "pod", "pods"),
		human.Age(time.Duration(doc.Seconds*float64(time.Second)))))
	for _, r := range doc.Items {
		var parts []string
		for _, s := range r.Settings {
			parts = append(parts, s.Name+"="+s.Value)
		}
		if len(parts) > 0 {
			f.Note(r.Name + ": " + strings.Join(parts, " "))
		}
		if r.Unplaced > 0 {
			f.Note(fmt.Sprintf("%s: %s found no node with room", r.Name, human.Plural(r.Unplaced, "pod", "pods")))
		}
		for _, n := range r.Failures[:min(mostFailing, len(r.Failures))] {
			f.Note(fmt.Sprintf("%s: %s on %s: %s", r.Name, human.Plural(n.Failed, "ADD fails", "ADDs fail"), n.Node, n.Why))
		}
		if more := len(r.Failures) - mostFailing; more > 0 {
			f.Note(fmt.Sprintf("%s: ADDs fail on %s: -o json lists them", r.Name, human.Plural(more, "more node", "more nodes")))
		}
		if o := r.Upstream; o != nil {
			f.Note(fmt.Sprintf("%s: upstream's daemon would hold %.1f addresses with %.1f requests per hour, and %s would fail",
				r.Name, o.Held, o.PerHour, human.Plural(o.Failed, "ADD", "ADDs")))
			for _, why := range r.Different {
				f.Note("  " + why)
			}
		}
	}
}

func whatIfColumns() []query.Column[prediction] {
	count := func(name, header, title string, drop int, of func(prediction) int) query.Column[prediction] {
		return query.Count(name, header, title, drop, func(r prediction) *int { n := of(r); return &n })
	}
	rate := func(name, header, title string, drop int, of func(prediction) float64) query.Column[prediction] {
		return query.Column[prediction]{
			Name: name, Header: header, Title: title, Drop: drop, Right: true, Text: func(r prediction) string { return fmt.Sprintf("%.1f", of(r)) },
			Number: func(r prediction) (float64, bool) { return of(r), true },
		}
	}
	return []query.Column[prediction]{
		{Name: "settings", Header: "SETTINGS", Title: "today's, or changed ones", Text: func(r prediction) string { return r.Name }},
		rate("held", "HELD", "subnet addresses held by all nodes together, on average", 0, func(r prediction) float64 { return r.Held.Avg }),
		count("held95", "P95", "95 % of the time they held at most this", 3, func(r prediction) int { return r.Held.P95 }),
		count("held-max", "MAX", "the most that they held", 3, func(r prediction) int { return r.Held.Max }),
		rate("wasted", "UNUSED", "of these, addresses for pods that no pod used, on average", 0,
			func(r prediction) float64 { return r.Wasted.Avg }).Headed("HELD FREE"),
		count("wasted95", "UNUSED-P95", "95 % of the time at most this were held free", 4,
			func(r prediction) int { return r.Wasted.P95 }).Headed("HELD FREE P95"),
		count("wasted-max", "UNUSED-MAX", "the most that were held free", 4,
			func(r prediction) int { return r.Wasted.Max }).Headed("HELD FREE MAX"),
		rate("calls", "CALLS/H", "requests to EC2 per hour: four for a new interface, three for a detached one", 0,
			func(r prediction) float64 { return r.Calls.PerHour }),
		rate("attaches", "ATTACH/H", "interfaces created and attached per hour", 2, func(r prediction) float64 { return r.Calls.Attaches }),
		rate("assigns", "ASSIGN/H", "assignments of addresses or prefixes per hour", 2, func(r prediction) float64 { return r.Calls.Assigns }),
		rate("releases", "RELEASE/H", "releases of addresses or prefixes per hour", 2, func(r prediction) float64 { return r.Calls.Releases }),
		rate("detaches", "DETACH/H", "interfaces detached and deleted per hour", 2, func(r prediction) float64 { return r.Calls.Detaches }),
		count("adds", "ADDS", "ADDs that were answered", 5, func(r prediction) int { return r.ADDs }),
		count("waited", "WAITED", "ADDs that found no address at once", 0, func(r prediction) int { return r.Waited }),
		count("failed", "FAILED", "ADDs that failed, and were retried", 0, func(r prediction) int { return r.Failed }),
		count("waiting", "WAITING", "pods that wait at the end", 1, func(r prediction) int { return r.Waiting }),
	}
}
