package status

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// codeSubnetShort is the problem code of a subnet that is nearly full.
const codeSubnetShort = "subnet-short"

// subnetProblems returns the problems of subnets, with the subnet in place of the node. A
// subnet without free addresses is an error while ADDs wait for it, else a warning.
func subnetProblems(all []document.SubnetFill, waited bool) []document.Problem {
	var out []document.Problem
	exhausted := document.SeverityWarning
	if waited {
		exhausted = document.SeverityError
	}
	for _, s := range all {
		switch {
		case !s.Short:
		case s.Available != nil && *s.Available <= 0:
			out = append(out, fleet.Judged(document.Problem{Node: s.ID, Severity: exhausted, Code: string(cause.SubnetExhausted),
				Message: cause.SubnetExhausted.Title()}))
		default:
			out = append(out, fleet.Judged(document.Problem{
				Node: s.ID, Severity: document.SeverityWarning, Code: codeSubnetShort,
				Message: percent(s) + " of the subnet in use, " + show.Int(s.Available) + " addresses free",
			}))
		}
	}
	return out
}

// withSubnets returns the problems of subnets and nodes, the worst first.
func withSubnets(s document.FleetStatus) []document.Problem {
	all := append(subnetProblems(s.Subnets, slices.ContainsFunc(s.Problems, waited)), s.Problems...)
	slices.SortStableFunc(all, func(a, b document.Problem) int {
		return cmp.Or(cmp.Compare(a.Effect.Rank(), b.Effect.Rank()), fleet.ByCause(a.Code, b.Code))
	})
	return all
}

// waited reports whether ADDs on a node wait for a subnet.
func waited(p document.Problem) bool {
	return p.Code == string(cause.SubnetExhausted) && p.Severity == document.SeverityError
}

// percent truncates instead of rounding: a subnet that is not quite full never shows 100%.
func percent(s document.SubnetFill) string {
	if s.Percent == nil {
		return show.Unknown
	}
	return strconv.Itoa(int(*s.Percent)) + "%"
}

// subnets shows where new addresses come from, the fullest first. clock returns the time on
// the node that reported a subnet, by its index.
func (fr Frame) subnets(all []document.SubnetFill, clock func(int) time.Time, rows int) []string {
	shown := make([]int, len(all))
	for i := range all {
		shown[i] = i
	}
	slices.SortStableFunc(shown, func(a, b int) int { return cmp.Compare(taken(all[b]), taken(all[a])) })
	shown = shown[:shownOf(len(all), rows)]
	t := table.Table{Columns: []table.Column{
		{Name: "SUBNET"}, {Name: "CIDR", Drop: 2}, {Name: "USED"}, {Name: "FULL"}, {Name: "FREE", Right: true},
		{Name: "AS OF", Right: true, Drop: 1}, {Name: "LEFT", Drop: 3, Empty: true},
	}}
	bar := 20
	if fr.Width > 0 && fr.Width < 100 {
		bar = barLeast
	}
	for _, i := range shown {
		s := all[i]
		drawn, full, class := show.Unknown, percent(s), paint.Plain
		if s.Usable != nil && s.Available != nil {
			used := min(max(0, *s.Usable-*s.Available), *s.Usable)
			drawn = draw.Pool{Assigned: used, Limit: *s.Usable}.Gauge(fr.style(), bar)
			if *s.Available*10 < *s.Usable {
				class = paint.Warn
			}
		}
		if s.Short {
			full, class = full+" !", paint.Bad
		}
		asOf, age := list.AsOf(s.Subnet, clock(i))
		if age == paint.Dim && !s.Short {
			class = paint.Dim
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: s.ID}, {Text: show.OrUnknown(s.CIDR)}, {Text: drawn, Raw: true}, {Text: full, Class: class},
			{Text: show.Int(s.Available), Class: class}, {Text: asOf, Class: age}, {Text: s.Left, Class: leftClass(s)},
		})
	}
	return fr.rest(t.Lines(fr.tableOptions()), len(all)-len(shown), rows, "subnets")
}

// leftClass warns of a subnet that runs out.
func leftClass(s document.SubnetFill) paint.Class {
	switch {
	case s.LeftSeconds == nil:
		return paint.Dim
	case *s.LeftSeconds == 0:
		return paint.Bad
	}
	return paint.Warn
}

// runsOut says which subnet runs out of addresses first; "" if that is not known of any.
func (fr Frame) runsOut(all []document.SubnetFill) string {
	var empty []string
	var next *document.SubnetFill
	for i, s := range all {
		switch {
		case s.LeftSeconds == nil:
		case *s.LeftSeconds == 0:
			empty = append(empty, show.Safe(s.ID))
		case next == nil || *s.LeftSeconds < *next.LeftSeconds:
			next = &all[i]
		}
	}
	var parts []string
	switch {
	case len(empty) == 1:
		parts = append(parts, fr.Palette.Paint(paint.Bad, empty[0]+" has none left"))
	case len(empty) > 1:
		parts = append(parts, fr.Palette.Paint(paint.Bad, human.Plural(len(empty), "subnet", "subnets")+" have none left"))
	}
	if next != nil {
		time, how, _ := strings.Cut(next.Left, ", ")
		first := "first to run out: "
		if len(empty) > 0 {
			first = "next to run out: "
		}
		parts = append(parts, first+show.Safe(next.ID)+" in "+fr.Palette.Paint(paint.Warn, time)+" ("+how+")")
	}
	return strings.Join(parts, "; ")
}

// taken orders subnets: those without a free address first, unknown ones last.
func taken(s document.SubnetFill) float64 {
	switch {
	case s.Percent != nil:
		return *s.Percent
	case s.Short:
		return 100
	}
	return -1
}
