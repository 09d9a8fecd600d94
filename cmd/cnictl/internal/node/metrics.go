package node

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// OutputRaw is the output form of node metrics that prints the daemon's text unchanged.
const OutputRaw = "raw"

// Metrics lists the metrics of a node's daemon.
func Metrics(ctx context.Context, f *cli.Factory, opts *Options) error {
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return err
	}
	defer nodes.Close()
	bounded, cancel := f.Deadline(ctx)
	defer cancel()
	name, text, err := metricsText(bounded, f, nodes, opts.Name)
	if err != nil {
		return err
	}
	if opts.Raw {
		body := text
		if f.Streams.OutTTY {
			body = safeText(body)
		}
		return write(f, body)
	}
	items, err := parseMetrics([]byte(text))
	if err != nil {
		return &cli.Error{Code: cli.ExitUnreachable, What: "the metrics of node " + name + " could not be parsed", Why: err.Error(),
			Do: f.Name + " node metrics " + name + " --raw"}
	}
	doc := document.NodeMetrics{APIVersion: introspect.APIVersion, Kind: document.KindMetrics, Node: name, SampledAt: f.Now().UTC(),
		Items: items, Errors: []document.NodeError{}}
	if output.Structured(f) {
		return output.PrintDocument(f, doc, false)
	}
	return output.PrintTable(f, metricsTable(items, output.Wide(f)))
}

// metricsText reads the text of a node's metrics.
func metricsText(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, name string) (string, string, error) {
	var text []byte
	none := errors.New("no access")
	name, err := Ask(ctx, f, nodes, name, "its metrics", func(context.Context, *client.Client) error { return nil })
	if err != nil {
		return name, "", err
	}
	errs := nodes.Ask(ctx, []string{name}, func(ctx context.Context, _ int, t fleet.Target, _ *client.Client) (err error) {
		if t.Metrics == nil {
			return none
		}
		text, err = t.Metrics(ctx)
		return err
	})
	switch err := errs[0]; {
	case errors.Is(err, none):
		return name, "", &cli.Error{
			Code: cli.ExitUnreachable, What: "the metrics of node " + name + " cannot be read",
			Why: "the daemon serves them on port 61678, which --targets gives no access to",
			Do:  "on the node: " + f.Name + " local metrics",
		}
	case err != nil:
		return name, "", &cli.Error{Code: cli.ExitUnreachable, What: "the metrics of node " + name + " could not be read", Why: err.Error()}
	}
	return name, string(text), nil
}

// metricsTable shows a sample per row. Histogram buckets are shown only if wide.
func metricsTable(items []document.Metric, wide bool) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "METRIC"}, {Name: "LABELS", Free: true}, {Name: "VALUE", Right: true},
		{Name: "TYPE", Drop: 1}}}
	if wide {
		t.Columns = append(t.Columns, table.Column{Name: "HELP", Free: true})
	}
	for _, m := range items {
		if !wide && strings.HasSuffix(m.Name, "_bucket") && m.Type == "histogram" {
			continue
		}
		value := show.Unknown
		if m.Value != nil {
			value = strconv.FormatFloat(*m.Value, 'f', -1, 64)
			if len(value) > 20 {
				value = strconv.FormatFloat(*m.Value, 'g', -1, 64)
			}
		}
		row := table.Cells(m.Name, show.OrUnknown(labels(m.Labels)), value, m.Type)
		if wide {
			row = append(row, table.Cell{Text: show.OrUnknown(m.Help)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func labels(all map[string]string) string {
	var parts []string
	for name, value := range all {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
