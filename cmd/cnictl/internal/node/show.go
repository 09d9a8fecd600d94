package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// Show shows a node in full.
func Show(ctx context.Context, f *cli.Factory, opts *Options) error {
	if err := output.Refuse(f, output.CSV); err != nil {
		return err
	}
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return showSilent(ctx, f, n, err)
	}
	if output.Structured(f) {
		return output.PrintDocument(f, store.NewNode(n).Document(), false)
	}
	v := view{n: n, s: *n.Summary, now: *n.SampledAt, Page: output.Page{Opts: output.TableOptions(f)}, ascii: f.ASCII(), wide: output.Wide(f)}
	return output.PrintLines(f, v.lines())
}

// view formats a node as lines.
type view struct {
	n     document.NodeIPAM
	s     introspect.Summary
	now   time.Time // the node's clock
	ascii bool
	wide  bool
	output.Page
}

func (v *view) lines() []string {
	v.identity()
	v.cards()
	v.rules()
	v.activity()
	v.Section("PROBLEMS", v.problems())
	v.Section("OPERATIONS IN FLIGHT", v.operations())
	v.Section("SUBNETS", v.subnets())
	v.Lines = append(v.Lines, "")
	enis := list.ENITable(v.n.ENIs, v.wide)
	v.Lines = append(v.Lines, enis.Lines(v.Opts)...)
	if dropped := enis.Dropped(v.Opts); len(dropped) > 0 && len(enis.Rows) > 0 {
		v.Line(table.Cell{Text: "no room for " + strings.Join(dropped, ", ") + ": see -o wide", Class: paint.Dim})
	}
	return v.Lines
}

// join joins the texts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "  ")
}

// heading is the first line of a node's page: its name, then the parts that are not empty.
func heading(name string, rest ...string) []table.Cell {
	cells := []table.Cell{{Text: "NODE " + name, Class: paint.Head}}
	if text := join(rest...); text != "" {
		cells = append(cells, table.Cell{Text: "  " + text})
	}
	return cells
}

func (v *view) identity() {
	var object document.NodeObject // as Kubernetes reports it
	if v.n.Object != nil {
		object = *v.n.Object
	}
	v.Line(heading(v.n.Metadata.Name,
		cmp.Or(v.s.InstanceType, object.InstanceType), cmp.Or(v.s.InstanceID, object.InstanceID), object.Zone)...)
	daemon := show.OrUnknown(v.n.DaemonVersion())
	if v.n.Source == document.SourceV1 {
		daemon = join(v.n.DaemonVersion(), "upstream or an older version; - means not reported")
	} else if v.s.StartedAt != nil {
		daemon += ", up " + show.Since(v.s.StartedAt, v.now)
	}
	if object.Daemon != nil {
		daemon = join(daemon, "image "+object.Daemon.Image)
	}
	v.Field("daemon", daemon)
}

func (v *view) cards() {
	const bar = 30
	for _, c := range v.s.Cards {
		pool := draw.Pool{Assigned: c.Assigned, Free: c.Free}
		if c.Cooling != nil {
			pool.Cooling = *c.Cooling
		}
		limit := ""
		if most, byMaxPods := fleet.Capacity(v.n, c); most != nil {
			pool.Limit = *most
			limit = "limit " + show.Count(pool.Limit)
			if byMaxPods {
				limit += " (max-pods)"
			}
		}
		gauge := table.Cell{Text: pool.Gauge(draw.Style{Theme: v.Opts.Palette, ASCII: v.ascii}, bar), Raw: true}
		v.Cells("card "+strconv.Itoa(c.Card), gauge, table.Cell{Text: "  " + join(
			show.Count(c.Assigned)+" used", show.Int(c.Cooling)+" cooling", show.Count(c.Free)+" free", limit,
		)})
		enis := show.Int(c.ENIs) + " ENIs"
		switch {
		case c.ENILimit != nil:
			enis = fmt.Sprintf("%s of %d ENIs", show.Int(c.ENIs), *c.ENILimit)
		case c.ENIs != nil:
			enis = human.Plural(*c.ENIs, "ENI", "ENIs")
		}
		if c.OtherENIs != nil && *c.OtherENIs > 0 {
			enis += fmt.Sprintf(" and %d not managed", *c.OtherENIs)
		}
		prefixes := ""
		if c.Prefixes != nil && *c.Prefixes > 0 {
			prefixes = fmt.Sprintf("%s, %s free", human.Plural(*c.Prefixes, "prefix", "prefixes"), show.Int(c.FreePrefixes))
		}
		v.Field("", join(enis, "mode "+show.OrUnknown(c.Mode), prefixes))
	}
}

// rules shows the settings that govern the pool.
func (v *view) rules() {
	t := v.s.Targets
	var targets []string
	for _, x := range []struct {
		name  string
		value *int
	}{{"WARM_ENI", t.WarmENI}, {"WARM_IP", t.WarmIP}, {"MINIMUM_IP", t.MinimumIP}, {"WARM_PREFIX", t.WarmPrefix}, {"MAX_ENI", t.MaxENI}} {
		value := show.Int(x.value)
		if x.name == "MAX_ENI" && value == "0" {
			value = show.Unknown // not set: the instance type is the limit
		}
		if slices.Contains(t.FromLabels, x.name+"_TARGET") || slices.Contains(t.FromLabels, x.name) {
			value += " (label)"
		}
		targets = append(targets, x.name+" "+value)
	}
	v.Field("targets", join(targets...)+"  (in effect: "+tables.WarmTargets(v.s)+")")
	if v.s.CooldownSeconds != nil {
		v.Field("cooldown", strconv.FormatFloat(*v.s.CooldownSeconds, 'f', -1, 64)+"s")
	}
	v.maxPods()
	if line := trunk(v.s); line != "" {
		v.Field("trunk", line)
	}
}

// trunk describes the node's branch ENIs; "" if it does not report them.
func trunk(s introspect.Summary) string {
	switch t := s.Trunk; {
	case t == nil:
		return ""
	case t.ENIID != "":
		return join(t.ENIID, "branches "+show.Int(t.BranchUsed)+"/"+show.Int(t.BranchLimit))
	case t.Supported != nil && !*t.Supported:
		return "not supported by " + cmp.Or(s.InstanceType, "the instance type")
	case !t.Enabled:
		return "none: ENABLE_POD_ENI is not true"
	default:
		return join("none yet", "branches -/"+show.Int(t.BranchLimit))
	}
}

func (v *view) maxPods() {
	m := v.s.MaxPods
	if m == nil {
		return
	}
	source := ""
	if m.Source != "" {
		source = "(" + m.Source + ")"
	}
	risk := ""
	if m.AtRisk > 0 {
		risk = fmt.Sprintf("at risk: %d without a branch ENI", m.AtRisk)
	}
	v.Field("max-pods", join(show.Int(m.Value), source, m.Verdict, risk,
		"enough addresses for "+show.Pods(m.IPCapacity), "with branch ENIs "+show.Pods(m.TotalCapacity), "recommended "+show.Pods(m.Recommended)))
	for _, line := range termLines(m.Terms) {
		v.Field("", line)
	}
}

func (v *view) activity() {
	var parts []string
	for _, r := range []struct {
		name string
		n    *introspect.RequestCounts
	}{{"ADDs", v.s.ADDs}, {"DELs", v.s.DELs}} {
		if r.n != nil {
			parts = append(parts, fmt.Sprintf("%s %d (%s failed%s)", r.name, r.n.Total, show.Int(r.n.Failed), causes(r.n.Causes)))
		}
	}
	if v.s.WaitingADDs != nil {
		parts = append(parts, fmt.Sprintf("waiting %d", *v.s.WaitingADDs))
	}
	if len(parts) > 0 {
		v.Field("pods", join(parts...))
	}
	var calls []string
	for _, c := range v.s.EC2Calls {
		call := c.Action + " " + strconv.Itoa(c.Calls)
		if c.Errors > 0 {
			call += fmt.Sprintf(" (%d failed)", c.Errors)
		}
		calls = append(calls, call)
	}
	if len(calls) > 0 {
		v.Field("EC2 calls", strings.Join(calls, ", "))
	}
}

// causes lists failures by cause, sorted by code.
func causes(counts map[string]int) string {
	var out strings.Builder
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, ", %s %d", code, counts[code])
	}
	return strings.Replace(out.String(), ", ", ": ", 1)
}

func (v *view) problems() table.Table {
	// What can be long comes last, so that it shifts nothing else.
	t := table.Table{Columns: []table.Column{{}, {}, {Right: true}, {Free: true}}}
	for _, p := range fleet.Problems(v.n) {
		c := paint.Warn
		if p.Effect.Harms() {
			c = paint.Bad
		}
		t.Rows = append(t.Rows,
			[]table.Cell{{Text: string(p.Effect), Class: c}, {Text: p.Name(), Class: paint.Dim}, {Text: show.OrUnknown(list.When(p, v.now))},
				{Text: p.Message}})
	}
	return t
}

func (v *view) operations() table.Table {
	t := table.Table{Columns: []table.Column{{Name: "KIND"}, {Name: "CARD", Right: true}, {Name: "ENI"}, {Name: "ADDRESSES", Right: true},
		{Name: "PREFIXES", Right: true}, {Name: "SINCE", Right: true}, {Name: "REASON", Free: true}}}
	for _, o := range v.s.Operations {
		t.Rows = append(t.Rows, table.Cells(o.Kind, strconv.Itoa(o.Card), show.OrUnknown(o.ENIID), strconv.Itoa(o.Addresses),
			strconv.Itoa(o.Prefixes), show.Since(o.StartedAt, v.now), show.OrUnknown(o.Reason)))
	}
	return t
}

func (v *view) subnets() table.Table {
	t := table.Table{Columns: []table.Column{{Name: "SUBNET"}, {Name: "CIDR"}, {Name: "FREE", Right: true}, {Name: "AS OF", Right: true}}}
	for _, s := range v.s.Subnets {
		asOf, age := list.AsOf(s, v.now)
		row := table.Cells(s.ID, show.OrUnknown(s.CIDR), show.Int(s.Available), asOf)
		row[2].Class, row[3].Class = age, age
		t.Rows = append(t.Rows, row)
	}
	return t
}
