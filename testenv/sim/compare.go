package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Comparison is one fleet run with our daemons and with the model of upstream.
type Comparison struct {
	Fleet          Fleet
	Ours, Upstream Outcome
}

// WriteTo prints both outcomes beside the bound set by the request limits alone.
func (c Comparison) WriteTo(out io.Writer) (int64, error) {
	var b strings.Builder
	f, bound := c.Fleet, c.Fleet.Bound()
	fmt.Fprintf(&b, "fleet    %d %s, up within %v, %d to %d pods each: %d pods\n", f.Nodes, f.Type, f.Wave, f.PodsFrom, f.PodsTo, c.Ours.Pods)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tall run\tpod p50\tp99\tmax\tfailed ADDs\tdaemon starts\tENIs\tunattached\trequests\tthrottled\t")
	for _, row := range []struct {
		name string
		o    Outcome
	}{{"ours", c.Ours}, {"upstream (model)", c.Upstream}} {
		calls, throttled := row.o.Total()
		all := seconds(row.o.All)
		if row.o.Running < row.o.Pods {
			all = fmt.Sprintf("%d wait", row.o.Pods-row.o.Running)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", row.name, all, seconds(row.o.Wait(0.5)), seconds(row.o.Wait(0.99)),
			seconds(row.o.Wait(1)), row.o.Failed, row.o.Starts, row.o.ENIs, row.o.Loose, calls, throttled)
	}
	fmt.Fprintf(t, "request limits alone\t%s\t\t\t\t\t\t\t\t%d\t\t\n", seconds(bound.After), total(bound.Calls))
	fmt.Fprintln(t, "\t\t\t\t\t\t\t\t\t\t\t")
	_ = t.Flush()
	c.writeCalls(&b, bound)
	n, err := io.WriteString(out, b.String())
	return int64(n), err
}

// writeCalls prints the requests by action.
func (c Comparison) writeCalls(out io.Writer, bound Bound) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "requests\tours\tthrottled\tupstream\tthrottled\tneeded\t")
	all := maps.Clone(c.Ours.Calls)
	maps.Copy(all, c.Upstream.Calls)
	for _, action := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t\n", action, c.Ours.Calls[action], c.Ours.Refused[action],
			c.Upstream.Calls[action], c.Upstream.Refused[action], bound.Calls[action])
	}
	_ = t.Flush()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
