package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/tui/show"
)

// printBacktest prints how good forecasts would have been.
func printBacktest(f *cli.Factory, known history) error {
	if err := output.Refuse(f, output.Name); err != nil {
		return err
	}
	doc := document.CapacityBacktestList{
		APIVersion: introspect.APIVersion, Kind: document.KindCapacityBacktestList, Items: backtests(known),
		Partial: known.partial, Errors: known.errors, SampledAt: known.last.UTC(),
	}
	if len(doc.Items) == 0 {
		return &cli.Error{Code: cli.ExitUsage, What: "too little data to test forecasts",
			Why: "a test takes a day of EC2's counts of a subnet, and six hours after that", Do: f.Name + " record FILE"}
	}
	if output.Structured(f) {
		return output.PrintDocument(f, doc, false)
	}
	return output.PrintTable(f, backtestTable(doc.Items))
}

// backtests returns the tests of all subnets with any case.
func backtests(known history) []document.CapacityBacktest {
	out := []document.CapacityBacktest{}
	for _, id := range slices.Sorted(maps.Keys(known.trends)) {
		t := known.trends[id]
		for _, b := range t.Backtest() {
			if b.Cases == 0 {
				continue
			}
			out = append(out, document.CapacityBacktest{
				ID: id, AheadSeconds: b.Ahead.Seconds(), Cases: b.Cases, Error: inventory.Mean(b.Missed, b.Cases),
				LastValue: inventory.Mean(b.LastValue, b.Cases), Line: inventory.Mean(b.Line, b.Cases), LastWeek: inventory.Mean(b.LastWeek, b.Weeks),
				Within: inventory.Mean(float64(b.Within), b.Cases), CoversSeconds: t[len(t)-1].At.Sub(t[0].At).Seconds(),
			})
		}
	}
	return out
}

func backtestTable(items []document.CapacityBacktest) table.Table {
	t := table.Table{Columns: []table.Column{
		{Name: "SUBNET"}, {Name: "AHEAD", Right: true}, {Name: "CASES", Right: true}, {Name: "ERROR", Right: true},
		{Name: "LAST VALUE", Right: true}, {Name: "LINE", Right: true}, {Name: "LAST WEEK", Right: true},
		{Name: "IN BAND", Right: true}, {Name: "OVER", Right: true},
	}}
	number := func(n *float64) string {
		if n == nil {
			return show.Unknown
		}
		return strconv.FormatFloat(math.Round(*n*10)/10, 'f', 1, 64)
	}
	age := func(seconds float64) string { return human.Age(time.Duration(seconds * float64(time.Second))) }
	for _, i := range items {
		t.Rows = append(t.Rows, table.Cells(i.ID, age(i.AheadSeconds), strconv.Itoa(i.Cases), number(i.Error), number(i.LastValue),
			number(i.Line), number(i.LastWeek), fmt.Sprintf("%.0f%%", 100**i.Within), age(i.CoversSeconds)))
	}
	return t
}
