package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"cnictl/testenv/cmd/internal/figure"
)

// report prints the results.
type report struct{ w io.Writer }

func (r report) section(format string, args ...any) {
	fmt.Fprintf(r.w, "\n"+format+"\n", args...)
}

// rows prints lines of tab-separated cells.
func (r report) rows(lines ...string) {
	cells := make([][]string, len(lines))
	for i, l := range lines {
		cells[i] = strings.Split(l, "\t")
	}
	figure.Lines(r.w, cells)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", figure.Milliseconds(d)) }

func ratio(a, b time.Duration) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// costs prints the cost of one command for each contender.
func (r report) costs(l *lab, verb string, m map[*contender]*samples, n int) {
	r.section("%s, one pod at a time, %d pods, ms (the daemon's CPU: means of 5 in a row)", verb, n)
	lines := []string{"contender\twall p50\tp90\tp99\tplugin CPU p50\tp90\tp99\tdaemon CPU p50\tp90\tp99\tpage faults\tfailed"}
	for _, c := range l.sequence() {
		s := m[c]
		cells := []string{c.name}
		for _, list := range [][]time.Duration{s.wall, s.cpu, s.daemon} {
			for _, q := range []float64{0.5, 0.9, 0.99} {
				cells = append(cells, ms(figure.Quantile(list, q)))
			}
		}
		cells = append(cells, fmt.Sprint(int64(figure.Quantile(s.faults, 0.5))), fmt.Sprint(len(s.failed)))
		lines = append(lines, strings.Join(cells, "\t"))
	}
	r.rows(lines...)
}

func (r report) sequential(l *lab, adds, dels map[*contender]*samples, n int) {
	r.costs(l, "ADD", adds, n)
	r.costs(l, "DEL", dels, n)
	r.section("Ratios of the medians")
	median := func(m map[*contender]*samples, c *contender) (wall, cpu time.Duration) {
		return figure.Quantile(m[c].wall, 0.5), figure.Quantile(m[c].cpu, 0.5) + m[c].daemonMean()
	}
	lines := []string{"\tADD wall\tADD CPU\tDEL wall\tDEL CPU\taim (ADD)"}
	for _, row := range []struct {
		of, to *contender
		aim    string
	}{
		{l.ours, l.floor, "1.30"}, {l.ours, l.reference, "0.40, must 0.58"}, {l.floor, l.reference, "0.33"},
		{l.pluginOnly, l.floor, ""}, {l.pluginOnly, l.reference, ""},
		{l.deployed, l.reference, "0.60 (CPU)"}, {l.ours6, l.ours, "no wait for DAD"},
	} {
		aw, ac := median(adds, row.of)
		bw, bc := median(adds, row.to)
		dw, dc := median(dels, row.of)
		ew, ec := median(dels, row.to)
		lines = append(lines, fmt.Sprintf("%s / %s\t%s\t%s\t%s\t%s\t%s", row.of.name, row.to.name,
			ratio(aw, bw), ratio(ac, bc), ratio(dw, ew), ratio(dc, ec), row.aim))
	}
	r.rows(lines...)
}

func (r report) memory(l *lab, held map[*contender]int64) {
	r.section("Memory of the largest process of an ADD, MB (upstream's plugin: 17.5; aim 0.35 of it)")
	lines := []string{"contender\tpeak"}
	for _, c := range l.sequence() {
		lines = append(lines, fmt.Sprintf("%s\t%.1f", c.name, float64(held[c])/1e6))
	}
	r.rows(lines...)
}

func (r report) parallel(l *lab, title string, m map[*contender]*samples) {
	r.section("%s", title)
	lines := []string{"contender\tADD/s\tof floor\twall p50 ms\tp90\tp99\tp99 of floor\tplugin CPU p50\tp90\tp99\tdaemon CPU mean\tfailed"}
	rate := func(s *samples) float64 {
		if s.took == 0 {
			return 0
		}
		return float64(len(s.wall)) / s.took.Seconds()
	}
	floor := rate(m[l.floor])
	for _, c := range l.all() {
		s := m[c]
		if s == nil {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s\t%.0f\t%.2f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d", c.name, rate(s), rate(s)/floor,
			ms(figure.Quantile(s.wall, 0.5)), ms(figure.Quantile(s.wall, 0.9)), ms(figure.Quantile(s.wall, 0.99)), ratio(figure.Quantile(s.wall, 0.99), figure.Quantile(m[l.floor].wall, 0.99)),
			ms(figure.Quantile(s.cpu, 0.5)), ms(figure.Quantile(s.cpu, 0.9)), ms(figure.Quantile(s.cpu, 0.99)), ms(s.daemonMean()), len(s.failed)))
	}
	r.rows(lines...)
	for _, c := range l.all() {
		if s := m[c]; s != nil && len(s.failed) > 0 {
			fmt.Fprintf(r.w, "  first failure of %s: %v\n", c.name, s.failed[0])
		}
	}
}

func (r report) crowd(l *lab, few, full map[*contender]*samples, many int) {
	r.section("ADD on a node that fills up: around pod 10 and the last before pod %d, wall p50 ms (aim 1.05, must 1.15)", many)
	lines := []string{"contender\tpod 10\tpod " + fmt.Sprint(many) + "\tratio\tfailed"}
	for _, c := range l.all() {
		if few[c] == nil {
			continue
		}
		a, b := figure.Quantile(few[c].wall, 0.5), figure.Quantile(full[c].wall, 0.5)
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d", c.name, ms(a), ms(b), ratio(b, a), len(few[c].failed)+len(full[c].failed)))
	}
	r.rows(lines...)
}

func (r report) starts(list []startCost) {
	r.section("Start of each program (aws-cni: CNI_COMMAND=VERSION, must stay below 400 page faults)")
	lines := []string{"program\twall p50 ms\tpage faults\tpackage init ms\tpackages\tpeak memory MB\tbinary MB"}
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%d\t%.3f\t%d\t%.1f\t%.1f", c.name, ms(c.wall), c.faults,
			figure.Milliseconds(c.init), c.packages, float64(c.peak)/1e6, float64(c.size)/1e6))
	}
	r.rows(lines...)
}
