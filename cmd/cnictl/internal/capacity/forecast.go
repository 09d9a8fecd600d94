package capacity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

type foreseen = document.CapacityForecast

func forecast(f *cli.Factory) *cobra.Command {
	list := &output.List[foreseen]{Columns: forecastColumns(), Key: func(r foreseen) string { return r.ID },
		Item: func(r foreseen) any { return r }}
	var test bool
	cmd := &cobra.Command{
		Use:   "forecast [RECORDING…]",
		Short: "Forecast when subnets run out of addresses",
		Long: `Forecast when each subnet runs out of addresses, from EC2's counts of its free addresses: those
that the daemons keep for 14 days, or those in recordings ("record" makes them; one node per
subnet is enough). From 24 hours on, the actual time is between EARLIEST and LATEST in 80 % of
all cases, before that in 10 %, and after it in 10 %. With less, a straight line gives a rough
answer. LEFT is what "subnets" and "status" say.

The forecast looks 14 times as far ahead as the counts go back (OVER), at most 30 days. It takes
into account how steadily the free addresses decline, from three days on their daily cycle, and
from nine days on their weekly one. It does not know your plans. A node that reboots loses its
counts, and a daemon in an IPv6 cluster or without EC2 keeps none.

--backtest shows how good forecasts would have been: every six hours of the past one is made from
what was known then, and compared with what followed. ERROR is the mean difference in
addresses, beside that of simpler methods; IN BAND is how often the count was in the band of 80 %.`,
		Example: "  {{.Command}} capacity forecast\n  {{.Command}} capacity forecast --backtest\n" +
			"  {{.Command}} capacity forecast monday.cnirec tuesday.cnirec --filter 'chance>50' -o json",
		RunE: func(cmd *cobra.Command, files []string) error {
			return runForecast(cmd.Context(), f, list, files, test)
		},
	}
	list.Register(f, cmd, false)
	cmd.Flags().BoolVar(&test, "backtest", false, "show how good forecasts would have been instead")
	return cmd
}

func runForecast(ctx context.Context, f *cli.Factory, list *output.List[foreseen], files []string, test bool) error {
	if f.Globals.Replay != "" {
		files = append(files, f.Globals.Replay)
	}
	known := history{trends: map[string]inventory.Trend{}, uses: map[string]store.SubnetUse{}, errors: []document.NodeError{}}
	var verdict func() error
	if len(files) == 0 {
		if !access.HasNodes(ctx, f) {
			return &cli.Error{Code: cli.ExitUsage, What: "no recording given", Why: "and there is no cluster to ask for the counts of its daemons",
				Do: f.Name + " record FILE makes one"}
		}
		nodes, err := access.Fleet(ctx, f)
		if err != nil {
			return err
		}
		defer nodes.Close()
		read, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
		known.add(sweep.WithHistory(ctx, nodes, store.Of(read.Items)))
		known.last, known.partial, known.errors = read.SampledAt, read.Partial, read.Errors
		verdict = func() error { return sweep.Verdict(f, read, interrupted) }
	} else {
		if err := known.files(ctx, f, files); err != nil {
			return err
		}
		verdict = func() error {
			if known.partial {
				f.Warn("interrupted: read up to %s", moment(known.last))
				return ctx.Err()
			}
			return nil
		}
	}
	if test {
		return cmp.Or(printBacktest(f, known), verdict())
	}
	items := known.items()
	switch enough := func(i foreseen) bool { return i.Readings > 1 || i.LeftSeconds != nil }; {
	case slices.ContainsFunc(items, enough):
	case ctx.Err() != nil:
		return ctx.Err()
	case len(files) == 0 && len(items) == 0:
		return cmp.Or(verdict(), tooShort(f, false))
	default:
		return tooShort(f, slices.ContainsFunc(items, func(i foreseen) bool { return i.Readings > 0 }))
	}
	err := list.Print(f, items, func(chosen []foreseen) any {
		return document.CapacityForecastList{
			APIVersion: introspect.APIVersion, Kind: document.KindCapacityForecastList, Items: chosen,
			Partial: known.partial, Errors: known.errors, SampledAt: known.last.UTC(),
		}
	})
	return cmp.Or(err, verdict())
}

// tooShort is the error for recordings with too few counts for a forecast.
func tooShort(f *cli.Factory, counted bool) error {
	e := &cli.Error{Code: cli.ExitUsage, What: "too little data for a forecast", Why: "no node reports the free addresses of a subnet",
		Do: f.Name + " record FILE"}
	if counted {
		e.Why = "there is one count of free addresses per subnet: EC2's counts are read every few minutes"
	}
	return e
}

// history holds the counts of subnets.
type history struct {
	trends  map[string]inventory.Trend
	uses    map[string]store.SubnetUse // as last seen
	last    time.Time
	partial bool
	errors  []document.NodeError
}

// files reads recordings, the earliest first.
func (h *history) files(ctx context.Context, f *cli.Factory, names []string) error {
	recordings := make([]*record.Player, 0, len(names))
	for _, name := range names {
		p, err := access.Player(f, name)
		if err != nil {
			return err
		}
		p.Play(false)
		recordings = append(recordings, p)
	}
	slices.SortStableFunc(recordings, func(a, b *record.Player) int {
		x, _ := a.Range()
		y, _ := b.Range()
		return x.Compare(y)
	})
	for _, p := range recordings {
		if ctx.Err() != nil {
			break
		}
		h.read(p, f.Globals.At == "")
	}
	h.partial = ctx.Err() != nil
	return nil
}

// read adds the readings of a recording up to its end, or to --at.
func (h *history) read(p *record.Player, toEnd bool) {
	_, to := p.Range()
	if !toEnd {
		to = p.Now()
	}
	p.Seek(to)
	h.add(p.View().WithReadings(p.Readings()))
	h.last = to
}

// add adds the readings of a view.
func (h *history) add(v *store.View) {
	for _, u := range v.Subnets {
		h.trends[u.ID] = inventory.JoinTrends(h.trends[u.ID], inventory.TrendOf(u))
		h.uses[u.ID] = u
	}
}

// items returns the forecasts; the subnet that runs out first comes first.
func (h *history) items() []foreseen {
	out := []foreseen{}
	for id, u := range h.uses {
		t := h.trends[id]
		f := t.Project()
		r := foreseen{ID: id, Zone: u.Zone, CIDR: u.CIDR, Available: u.Available, AsOf: u.AsOf, Readings: f.Readings, Seconds: f.Over.Seconds()}
		switch {
		case !u.Range.IsValid() || !u.Range.Addr().Is4():
			r.Why = "IPv6 subnets do not run out"
		case len(t) == 0:
			r.Why = "no node reports its free addresses"
		default:
			foresee(&r, f, t[len(t)-1].At)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b foreseen) int {
		return cmp.Or(nilLast(a.Likely, b.Likely, time.Time.Compare), nilLast(a.Early, b.Early, time.Time.Compare), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// foresee adds a forecast made at a time.
func foresee(r *foreseen, f inventory.Forecast, now time.Time) {
	in := func(d time.Duration) *time.Time {
		if d == 0 && !f.Empty() {
			return nil
		}
		return new(now.Add(d))
	}
	r.Left = f.Words()
	if left, ok := f.Seconds(); ok {
		r.LeftSeconds = &left
	}
	if f.Measured() {
		r.ChangePerHour = &f.PerHour
	}
	r.Likely = in(f.Left)
	if !f.Rough {
		r.Share, r.Horizon, r.Early, r.Late = &f.Share, new(now.Add(f.Ahead)), in(f.Early), in(f.Late)
	}
	switch {
	case f.Empty():
		r.Why = "no free address now"
	case f.Rough && f.Known():
		r.Why = "rough: counts cover " + human.Age(f.Over) + "; 24h make a forecast"
	case f.Rough && f.Readings > 1:
		r.Why = "counts cover " + human.Age(f.Over) + ": " + human.Age(inventory.LeastLine) + " make a rough forecast, 24h a good one"
	case f.Rough:
		r.Why = "one count: two make a rough forecast, 24h a good one"
	}
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }

func forecastColumns() []query.Column[foreseen] {
	text, number := query.Words[foreseen], query.Count[foreseen]
	at := func(name, header, title string, drop int, of func(foreseen) *time.Time) query.Column[foreseen] {
		return query.Column[foreseen]{
			Name: name, Header: header, Title: title, Drop: drop, Unit: "SECONDS",
			Text: func(r foreseen) string {
				switch {
				case of(r) != nil:
					return moment(*of(r))
				case r.Horizon != nil:
					return "later"
				}
				return show.Unknown
			},
			Number: func(r foreseen) (float64, bool) {
				if of(r) == nil || r.AsOf == nil {
					return 0, false
				}
				return of(r).Sub(*r.AsOf).Seconds(), true
			},
		}
	}
	wide := number("readings", "READINGS", "counts that were read", 0, func(r foreseen) *int { return &r.Readings })
	wide.Wide = true
	over := query.Column[foreseen]{
		Name: "over", Header: "OVER", Title: "how far the counts go back", Right: true, Drop: 3, Unit: "SECONDS", CSV: []query.Column[foreseen]{},
		Text: func(r foreseen) string {
			if r.Readings < 2 {
				return show.Unknown
			}
			return human.Age(time.Duration(r.Seconds * float64(time.Second)))
		},
		Number: func(r foreseen) (float64, bool) { return r.Seconds, r.Readings > 1 },
	}
	return []query.Column[foreseen]{
		{Name: "subnet", Header: "SUBNET", Title: "subnet ID", Text: func(r foreseen) string { return r.ID }},
		text("zone", "ZONE", "availability zone of its nodes", 3, func(r foreseen) string { return r.Zone }),
		text("cidr", "CIDR", "IPv4 CIDR block", 4, func(r foreseen) string { return r.CIDR }),
		number("free", "FREE", "free addresses, by EC2's last count", 0, func(r foreseen) *int { return r.Available }),
		{
			Name: "change", Header: "CHANGE/H", Title: "change of the free addresses per hour", Right: true, Drop: 1,
			Text: func(r foreseen) string {
				if r.ChangePerHour == nil {
					return show.Unknown
				}
				return strconv.FormatFloat(math.Round(*r.ChangePerHour*10)/10+0, 'f', 1, 64)
			},
			Number: func(r foreseen) (float64, bool) {
				if r.ChangePerHour == nil {
					return 0, false
				}
				return *r.ChangePerHour, true
			},
		},
		at("likely", "RUNS OUT", "it is as likely to run out before as after this time (UTC)", 0,
			func(r foreseen) *time.Time { return r.Likely }),
		at("early", "EARLIEST", "with a chance of 10 % it runs out before this time (UTC)", 1, func(r foreseen) *time.Time { return r.Early }),
		at("late", "LATEST", "with a chance of 90 % it runs out before this time (UTC)", 2, func(r foreseen) *time.Time { return r.Late }),
		{
			Name: "chance", Header: "CHANCE", Title: "chance that it runs out within the forecast period", Right: true, Drop: 3, Unit: "%",
			Text: func(r foreseen) string {
				if r.Share == nil {
					return show.Unknown
				}
				return fmt.Sprintf("%.0f%%", 100**r.Share)
			},
			Number: func(r foreseen) (float64, bool) {
				if r.Share == nil {
					return 0, false
				}
				return 100 * *r.Share, true
			},
		},
		wide,
		over,
		{Name: "left", Header: "LEFT", Title: "time until no address is free, and how sure that is", Drop: 6, CSV: []query.Column[foreseen]{},
			Unit: "SECONDS",
			Text: func(r foreseen) string { return show.OrUnknown(r.Left) },
			Number: func(r foreseen) (float64, bool) {
				if r.LeftSeconds == nil {
					return 0, false
				}
				return *r.LeftSeconds, true
			}},
		{Name: "why", Header: "NOTE", Title: "why there is no forecast, and other remarks", Drop: 5,
			Text: func(r foreseen) string { return r.Why }},
	}
}
