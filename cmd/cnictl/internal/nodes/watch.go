package nodes

import (
	"context"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// watcher prints all rows once and then those that changed, as kubectl does.
type watcher struct {
	f      *cli.Factory
	nodes  *fleet.Fleet
	last   map[string]string // row as printed, by node
	widths []int             // of the columns so far
}

func (w *watcher) show(ctx context.Context) (bool, error) {
	list := w.nodes.Sweep(ctx, fleet.Query{})
	if ctx.Err() != nil {
		return false, nil // half a sweep would show nodes as lost
	}
	original := cli.HasOriginal(list)
	if w.f.Structured() {
		// A stream of objects, each a node that changed.
		for _, n := range w.changed(list.Items) {
			if err := w.f.PrintDocument(n, true); err != nil {
				return false, err
			}
		}
		return original, nil
	}
	items := w.changed(list.Items)
	if len(items) == 0 {
		return original, nil
	}
	t := Table(items, w.f.Wide())
	opts := w.f.TableOptions()
	opts.NoHeaders = opts.NoHeaders || w.widths != nil
	opts.MinWidths = w.widths
	w.widths = t.Widths(opts)
	return original, w.f.PrintLines(t.Lines(opts))
}

// changed keeps the nodes whose row is another than last time; the time since start
// alone changes none.
func (w *watcher) changed(items []introspect.NodeIPAM) []introspect.NodeIPAM {
	var out []introspect.NodeIPAM
	for _, n := range items {
		r := RowOf(n)
		row := strings.Join([]string{
			r.Type, r.ENIs, r.AssignedText, r.CoolingText, r.FreeText, r.LimitText, r.Warm, r.MaxPods, r.Branch, r.Mode, r.Prefixes, r.Waiting, r.Instance, r.Version, r.Source, r.Status,
		}, "\x00")
		if last, seen := w.last[n.Metadata.Name]; seen && last == row {
			continue
		}
		w.last[n.Metadata.Name] = row
		out = append(out, n)
	}
	return out
}
