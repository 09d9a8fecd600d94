package node

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/show"
)

// planTargets are the flags of node plan and the settings they override.
var planTargets = []struct{ flag, parameter, setting, help string }{
	{"warm-eni-target", "warmEni", "WARM_ENI_TARGET", "plan with this `number` of spare ENIs"},
	{"warm-ip-target", "warmIp", "WARM_IP_TARGET", "plan with this `number` of spare addresses"},
	{"minimum-ip-target", "minimumIp", "MINIMUM_IP_TARGET", "plan with at least this `number` of addresses"},
	{"warm-prefix-target", "warmPrefix", "WARM_PREFIX_TARGET", "plan with this `number` of spare prefixes"},
	{"max-eni", "maxEni", "MAX_ENI", "plan with at most this `number` of ENIs"},
	{"max-pods", "maxPods", "max-pods", "plan with at most this `number` of pods"},
}

// planFlags registers the targets of a what-if plan. The function it returns makes the query
// from the flags given on the command line.
func planFlags(cmd *cobra.Command) func() (introspect.PlanQuery, error) {
	values := map[string]*int{}
	for _, t := range planTargets {
		values[t.parameter] = cmd.Flags().Int(t.flag, 0, t.help)
	}
	return func() (introspect.PlanQuery, error) {
		var q introspect.PlanQuery
		for _, p := range q.Parameters() {
			for _, t := range planTargets {
				if t.parameter != p.Name || !cmd.Flags().Changed(t.flag) {
					continue
				}
				if v := *values[p.Name]; v < 0 || v > introspect.MaxTarget {
					return q, cli.Usage("--%s=%d: must be 0 to %d", t.flag, v, introspect.MaxTarget)
				}
				*p.Value = values[p.Name]
			}
		}
		return q, nil
	}
}

// Plan shows what the pool would do next, and what it would do with other targets.
func Plan(ctx context.Context, f *cli.Factory, opts *Options) error {
	if err := output.Refuse(f, output.CSV); err != nil {
		return err
	}
	doc := document.PlanComparison{APIVersion: introspect.APIVersion, Kind: document.KindPlanComparison, Errors: []document.NodeError{}}
	var err error
	if f.Recording != nil {
		err = recordedPlan(ctx, f, opts, &doc)
	} else {
		err = askPlan(ctx, f, opts, &doc)
	}
	if err != nil {
		return err
	}
	if output.Structured(f) {
		return output.PrintDocument(f, doc, false)
	}
	v := planView{doc: doc, now: *doc.SampledAt, Page: output.Page{Opts: output.TableOptions(f)}}
	return output.PrintLines(f, v.lines())
}

// askPlan reads the plans from the node.
func askPlan(ctx context.Context, f *cli.Factory, opts *Options, doc *document.PlanComparison) (err error) {
	doc.Node, err = ask(ctx, f, opts, "its plan", func(ctx context.Context, c *client.Client) error {
		current, at, err := c.Plan(ctx, introspect.PlanQuery{})
		if err != nil || opts.Plan == (introspect.PlanQuery{}) {
			doc.Current, doc.SampledAt = current, &at
			return err
		}
		other, at, err := c.Plan(ctx, opts.Plan)
		doc.Current, doc.WhatIf, doc.SampledAt = current, &other, &at
		return err
	})
	return err
}

// recordedPlan reads the plan from a recording.
func recordedPlan(ctx context.Context, f *cli.Factory, opts *Options, doc *document.PlanComparison) error {
	if opts.Plan != (introspect.PlanQuery{}) {
		return &cli.Error{Code: cli.ExitUsage, What: "a recording cannot be planned with other targets",
			Why: "only a running daemon can compute such a plan", Do: "omit the target flags"}
	}
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return err
	}
	defer nodes.Close()
	d := f.Recording.Detail(ctx, opts.Name, watch.WantPlan, watch.Query{})
	if d.Plan == nil {
		return &cli.Error{Code: cli.ExitUnreachable, What: "node " + opts.Name + " has no plan at this time",
			Why: d.Errors[watch.WantPlan].Message, Do: f.Name + " node show " + opts.Name + " --replay " + f.Globals.Replay}
	}
	at := f.Now().UTC()
	doc.Node, doc.Current, doc.SampledAt = opts.Name, *d.Plan, &at
	return nil
}

// planView formats plans as lines.
type planView struct {
	doc document.PlanComparison
	now time.Time // the node's clock
	output.Page
}

func (v *planView) lines() []string {
	v.Line(table.Cell{Text: "NODE " + v.doc.Node, Class: paint.Head})
	v.Section("TARGETS", v.targets())
	v.plan("NEXT", v.doc.Current)
	if v.doc.WhatIf != nil {
		v.plan("NEXT, WITH THESE TARGETS", *v.doc.WhatIf)
	}
	return v.Lines
}

// targets shows the targets side by side and marks those that differ.
func (v *planView) targets() table.Table {
	t := table.Table{Columns: []table.Column{{Name: "TARGET"}, {Name: "NODE", Right: true}}}
	if v.doc.WhatIf != nil {
		t.Columns = append(t.Columns, table.Column{Name: "IF", Right: true}, table.Column{Name: ""})
	}
	own := targetsOf(v.doc.Current)
	for i, target := range planTargets {
		row := table.Cells(target.setting, own[i])
		if v.doc.WhatIf != nil {
			other := targetsOf(*v.doc.WhatIf)[i]
			mark := table.Cell{Text: ""}
			if other != own[i] {
				mark = table.Cell{Text: "changed", Class: paint.Warn}
			}
			row = append(row, table.Cell{Text: other}, mark)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// targetsOf formats the targets of a plan in the order of planTargets. A 0 that means "not
// set" is shown as unknown.
func targetsOf(p introspect.NodePlan) []string {
	maxENI, maxPods := p.Targets.MaxENI, &p.MaxPods
	if maxENI != nil && *maxENI == 0 {
		maxENI = nil
	}
	if p.MaxPods == 0 {
		maxPods = nil
	}
	return []string{
		show.Int(p.Targets.WarmENI), show.Int(p.Targets.WarmIP), show.Int(p.Targets.MinimumIP),
		show.Int(p.Targets.WarmPrefix), show.Int(maxENI), show.Int(maxPods),
	}
}

// plan formats one plan: its actions, and what blocks it.
func (v *planView) plan(title string, p introspect.NodePlan) {
	if len(p.Actions) == 0 {
		v.Title(title)
		words := "nothing now: the targets are met, or an EC2 call, a back-off or a cooldown must end first; node show lists them"
		if len(p.Blocked)+len(p.Unmet) > 0 {
			words = "nothing: every action is blocked"
		}
		v.Lines = append(v.Lines, words)
	}
	v.Section(title, v.actions(p.Actions))
	v.Section("BLOCKED: an ADD would fail now", blocked(p.Blocked))
	v.Section("UNMET: out of reach with the current pods", unmet(p.Unmet))
}

func (v *planView) actions(actions []introspect.PlannedAction) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "#", Right: true}, {Name: "ACTION"}, {Name: "ENI", Drop: 2}, {Name: "CARD:DEVICE", Drop: 3}, {Name: "COUNT", Right: true},
		{Name: "SUBNET", Drop: 4}, {Name: "WHY", Free: true, Min: 20},
	}}
	for i, a := range actions {
		why := a.Reason
		if a.Title != "" {
			why += ": " + a.Title
		}
		if a.Until != nil {
			why += ", in " + show.Until(a.Until, v.now)
		}
		if len(a.CIDRs) > 0 {
			why += " (" + joinCIDRs(a.CIDRs) + ")"
		}
		place := show.Unknown
		if a.Card != nil && a.Device != nil {
			place = fmt.Sprintf("%d:%d", *a.Card, *a.Device)
		}
		count := show.Unknown
		if a.Count > 0 {
			count = strconv.Itoa(a.Count)
			if a.Prefixes {
				count += " prefixes"
			}
		}
		eni := a.ENIID
		if eni == "" && a.Kind == introspect.ActionAttachENI {
			eni = "(new)"
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: strconv.Itoa(i + 1)}, {Text: a.Kind, Class: actionClass(a.Kind)}, {Text: show.OrUnknown(eni)}, {Text: place}, {Text: count},
			{Text: show.OrUnknown(a.SubnetID)}, {Text: why},
		})
	}
	return t
}

func joinCIDRs(cidrs []netip.Prefix) string {
	const most = 4
	var words []string
	for _, c := range cidrs[:min(most, len(cidrs))] {
		words = append(words, c.String())
	}
	if len(cidrs) > most {
		words = append(words, fmt.Sprintf("and %d more", len(cidrs)-most))
	}
	return strings.Join(words, ", ")
}

func actionClass(kind string) paint.Class {
	switch kind {
	case introspect.ActionWait:
		return paint.Dim
	case introspect.ActionUnassignAddresses, introspect.ActionUnassignPrefixes, introspect.ActionDetachENI:
		return paint.Cooling
	}
	return paint.Free
}

func blocked(cards []introspect.BlockedCard) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "CARD", Right: true}, {Name: "CAUSE"}, {Name: "MEANING", Free: true, Min: 20, Drop: 1},
		{Name: "MESSAGE", Free: true, Min: 20}}}
	for _, b := range cards {
		title := cause.Code(b.Cause).Title()
		t.Rows = append(t.Rows, []table.Cell{{Text: strconv.Itoa(b.Card)}, {Text: catalogue.Named(b.Cause), Class: paint.Bad},
			{Text: show.OrUnknown(title)}, {Text: b.Message}})
	}
	return t
}

func unmet(targets []introspect.UnmetTarget) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "CARD", Right: true}, {Name: "TARGET"}, {Name: "WANTED", Right: true},
		{Name: "POSSIBLE", Right: true}, {Name: "WHY", Free: true, Min: 20}}}
	for _, u := range targets {
		t.Rows = append(t.Rows, []table.Cell{{Text: strconv.Itoa(u.Card)}, {Text: u.Target}, {Text: show.Count(u.Wanted)},
			{Text: show.Count(u.Possible)}, {Text: u.Reason + ": " + u.Title, Class: paint.Warn}})
	}
	return t
}
