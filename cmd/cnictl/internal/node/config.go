package node

import (
	"context"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/cmd/cnictl/internal/text"
	"cnictl/daemon/api/introspect"
)

// nodeConfig is the document of node config.
type nodeConfig struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Node       string                 `json:"node"`
	SampledAt  time.Time              `json:"sampledAt"`
	Items      []introspect.ConfigRow `json:"items"`
}

// Config lists the settings of a node.
func Config(ctx context.Context, f *cli.Factory, opts *Options) error {
	nodes, err := opts.Open(ctx)
	if err != nil {
		return err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	doc, name, err := f.SingleConfig(ctx, nodes, opts.Name)
	if err != nil {
		return err
	}
	if f.Structured() {
		return f.PrintDocument(nodeConfig{introspect.APIVersion, introspect.KindConfig, name, f.Now().UTC(), doc.Items}, false)
	}
	return f.PrintTable(configTable(doc.Items))
}

func configTable(rows []introspect.ConfigRow) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "NAME"}, {Name: "DECLARED", Free: true}, {Name: "EFFECTIVE", Free: true}, {Name: "SOURCE"}, {Name: "PROBLEM", Free: true}}}
	for _, r := range rows {
		declared := text.Unknown
		if r.Declared != nil {
			declared = *r.Declared
			if declared == "" {
				declared = `""`
			}
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: r.Name}, {Text: declared}, {Text: r.Effective}, {Text: r.Source}, problem(r),
		})
	}
	return t
}

// problem is what is wrong with a setting, and whether it is without effect: a warning
// where somebody set it, a note where it is as it always is.
func problem(r introspect.ConfigRow) table.Cell {
	without := ""
	switch r.Support {
	case introspect.SupportLater:
		without = "not acted on by this version"
	case introspect.SupportNoOp:
		without = "not acted on by any version now"
	}
	switch {
	case without == "":
		return table.Cell{Text: r.Problem, Class: paint.Warn}
	case r.Problem != "":
		return table.Cell{Text: r.Problem + "; " + without, Class: paint.Warn}
	case r.Declared != nil:
		return table.Cell{Text: without, Class: paint.Warn}
	}
	return table.Cell{Text: without, Class: paint.Dim}
}
