package node

import (
	"context"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// Config lists the settings of a node.
func Config(ctx context.Context, f *cli.Factory, opts *Options) error {
	nodes, err := opts.Open(ctx, f)
	if err != nil {
		return err
	}
	defer nodes.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	doc, name, err := sweep.Config(ctx, f, nodes, opts.Name)
	if err != nil {
		return err
	}
	if output.Structured(f) {
		return output.PrintDocument(f, document.NodeSettingList{
			APIVersion: introspect.APIVersion, Kind: document.KindNodeSettingList, Node: name, SampledAt: f.Now().UTC(), Items: doc.Items,
			Errors: []document.NodeError{},
		}, false)
	}
	return output.PrintTable(f, configTable(doc.Items))
}

func configTable(rows []introspect.ConfigRow) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "NAME"}, {Name: "DECLARED", Free: true}, {Name: "EFFECTIVE", Free: true}, {Name: "SOURCE"},
		{Name: "SUPPORT"}, {Name: "PROBLEM", Free: true, Empty: true}}}
	for _, r := range rows {
		declared := show.Unknown
		if r.Declared != nil {
			declared = *r.Declared
			if declared == "" {
				declared = `""`
			}
		}
		t.Rows = append(t.Rows, []table.Cell{
			{Text: r.Name}, {Text: declared}, {Text: show.OrUnknown(r.Effective)}, {Text: r.Source}, support(r),
			{Text: r.Problem, Class: paint.Warn},
		})
	}
	return t
}

// support shows whether the daemon acts on a setting. A setting that is set but ignored is
// highlighted.
func support(r introspect.ConfigRow) table.Cell {
	c := table.Cell{Text: show.OrUnknown(r.Support), Class: paint.Dim}
	switch r.Support {
	case introspect.SupportActs:
		c.Class = paint.Plain
	case introspect.SupportLater, introspect.SupportNoOp:
		if r.Declared != nil {
			c.Class = paint.Warn
		}
	}
	return c
}
